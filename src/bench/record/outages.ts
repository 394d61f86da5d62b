import { isService } from './calls.ts';
import { type Line, line, note } from './line.ts';
import type { Recording } from './recording.ts';
import type { Stand } from './stand.ts';

/** How long before the gateway notices, or after, the pages of a box may be seen to be off. */
const NOTICED_MS = 30_000;
const BACK = '30s';

/** A time in which the gateway did not have a box. */
interface Outage {
  box: string;
  fromMs: number;
  toMs: number;
  why: string;
  /** Its pages were off too; undefined where nobody looked. */
  wasOff: boolean | undefined;
  /** Whether the bench turns the box off for it. */
  isPlayed: boolean;
}

/** When boxes were away, and what of that a scenario can do. */
export class Outages {
  readonly #outages: Outage[] = [];
  readonly #recording: Recording;
  readonly #stand: Stand;

  constructor(recording: Recording, stand: Stand) {
    this.#recording = recording;
    this.#stand = stand;
    const open = new Map<string, { atMs: number; why: string }>();
    for (const it of recording.heard) {
      if (it.kind !== 'box') continue;
      const left = open.get(it.box);
      if (!it.online) open.set(it.box, it);
      else if (left !== undefined) this.#add(it.box, left, it.atMs);
      if (it.online) open.delete(it.box);
    }
    for (const [box, left] of open) this.#add(box, left, Number.POSITIVE_INFINITY);
  }

  /** Whether the bench has this box off at this moment. */
  isOff(box: string | undefined, atMs: number): boolean {
    return this.#outages.some((it) => it.isPlayed && it.box === box && atMs >= it.fromMs && atMs <= it.toMs);
  }

  lines(): Line[] {
    return [...this.#outages.flatMap((it) => this.#linesOf(it)), ...this.#restarts()];
  }

  #add(box: string, { atMs: fromMs, why }: { atMs: number; why: string }, toMs: number): void {
    const { sights, heard } = this.#recording;
    const isWithin = (atMs: number) => atMs >= fromMs && atMs <= toMs;
    const own = sights.filter((it) => it.box === box);
    const isSeen = own.some(({ atMs }) => atMs <= fromMs);
    const wasOff = isSeen
      ? own.some(({ screen, atMs }) => screen === 'off' && atMs >= fromMs - NOTICED_MS && atMs <= toMs)
      : undefined;
    const matters = heard.some((it) => isService(it) && isWithin(it.atMs));
    this.#outages.push({ box, fromMs, toMs, why, wasOff, isPlayed: wasOff ?? matters });
  }

  #linesOf({ box, fromMs, toMs, why, wasOff, isPlayed }: Outage): Line[] {
    const lost = `the gateway lost ${box}: ${why}`;
    if (!isPlayed) {
      const more = wasOff === false ? ', which showed its pages all the while' : '';
      const back = Number.isFinite(toMs) ? [note(toMs, `${box} was back`)] : [];
      return [note(fromMs, `${lost}${more}. The bench cannot know why, and does nothing about it`), ...back];
    }
    const key = this.#stand.boxKey(box);
    const reason = wasOff === true ? lost : `${lost}. The bench cannot know why: it turns the box off`;
    const off = [
      line(fromMs, { ...key, fault: { box: 'off' } }, reason),
      line(fromMs, { ...key, expect: { unreachable: true } }),
    ];
    if (!Number.isFinite(toMs)) return off;
    return [
      ...off,
      line(toMs, { ...key, fault: { box: 'on' } }),
      line(toMs, { ...key, expect: { online: true, within: BACK } }),
    ];
  }

  #restarts(): Line[] {
    return this.#recording.restartsMs.flatMap((atMs) => [
      line(atMs, { fault: { gateway: 'off' } }, 'the gateway was started anew'),
      line(atMs, { fault: { gateway: 'on' } }),
      ...this.#stand.boxes.map((box) =>
        line(atMs, { ...this.#stand.boxKey(box), expect: { online: true, within: BACK } }),
      ),
    ]);
  }
}
