import { z } from 'zod';
import { systemClock } from '../../lib/clock.ts';
import type { BoxAt } from '../box-at.ts';
import type { Pace } from '../pace.ts';
import type { Probe } from '../probe.ts';
import { type ScreenKind, screenKindOf } from '../screen-kind.ts';

/** What a box showed from a moment on. */
export interface Sight {
  /** On the clock of whoever looks. */
  atMs: number;
  box: string;
  /** `off`: its pages did not answer. Undefined for a screen of no kind that is known. */
  screen: ScreenKind | 'off' | undefined;
  /** `/screen.txt`. */
  text: string;
  /** What a decoder read in the picture. */
  qr: string | undefined;
}

/** Until a box that is off is asked again. */
const AGAIN_MS = 500;
/** Looks at one change: a state is told as soon as it is decided, and drawn a moment later. */
const LOOKS_MAX = 100;
const LOOK_MS = 10;
/** Sights of one box; what comes beyond is not kept. */
const SIGHTS_MAX = 20_000;

const told = z.looseObject({
  state: z.string(),
  order: z.looseObject({ qrCode: z.string() }).nullish(),
});

/** Screens that a state of `/status` may have, where they tell whether it is drawn. */
const SCREENS_OF: Readonly<Record<string, readonly ScreenKind[]>> = {
  showing: ['payment'],
  paid: ['paid'],
  expired: ['expired'],
  idle: ['idle', 'cancelled', 'account', 'history', 'too-dense'],
};

/** Looks at one box whenever it says that something has changed, and keeps what it then shows. */
export class Sights {
  readonly seen: Sight[] = [];
  readonly #box: BoxAt;
  readonly #probe: Probe;
  readonly #pace: Pace;
  #told: z.output<typeof told> = { state: '' };
  /** When the box last told of a change that was not looked at. */
  #changedMs: number | undefined;
  #looking: Promise<void> | undefined;

  constructor(box: BoxAt, { probe, pace }: { probe: Probe; pace: Pace }) {
    this.#box = box;
    this.#probe = probe;
    this.#pace = pace;
  }

  /** Settles once the signal ends it, and what was told until then is seen. */
  async watch(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      // A box that is off, or goes off, is a sight of its own.
      await this.#box.watch((status) => this.#hear(status), signal).catch(() => undefined);
      await this.#looking;
      if (signal.aborted) return;
      this.#keep({ atMs: this.#pace.clock.monotonicMs(), screen: 'off', text: '', qr: undefined });
      await this.#pace.clock.sleep(AGAIN_MS, signal);
    }
  }

  #hear(status: unknown): void {
    const parsed = told.safeParse(status);
    if (!parsed.success) return;
    this.#told = parsed.data;
    this.#changedMs = this.#pace.clock.monotonicMs();
    this.#looking ??= this.#pace
      .during(() => this.#look())
      // It went off while it was looked at, which the end of its events tells.
      .catch(() => undefined)
      .finally(() => {
        this.#looking = undefined;
      });
  }

  async #look(): Promise<void> {
    for (let looks = 1; looks <= LOOKS_MAX && this.#changedMs !== undefined; looks += 1) {
      const atMs = this.#changedMs;
      this.#changedMs = undefined;
      if (await this.#see(atMs, looks === LOOKS_MAX)) continue;
      this.#changedMs ??= atMs;
      await systemClock.sleep(LOOK_MS);
    }
  }

  /** Whether what was told is on the screen; `isLast`: what is there is kept all the same. */
  async #see(atMs: number, isLast: boolean): Promise<boolean> {
    const { state, order } = this.#told;
    const text = await this.#box.text();
    const screen = screenKindOf(text);
    const isOfState = screen === undefined || (SCREENS_OF[state]?.includes(screen) ?? true);
    if (!isOfState && !isLast) return false;
    const last = this.seen.at(-1);
    // An order that counts down is decoded once.
    if (last?.screen === screen && withoutTime(last?.text) === withoutTime(text)) return true;
    const qr = (await this.#probe.see(this.#box))?.qr;
    const isDrawn = screen === 'payment' ? qr === (order?.qrCode ?? qr) && qr !== undefined : qr === undefined;
    if (!isDrawn && !isLast) return false;
    this.#keep({ atMs, screen, text, qr });
    return true;
  }

  #keep(sight: Omit<Sight, 'box'>): void {
    if (this.seen.at(-1)?.screen === 'off' && sight.screen === 'off') return;
    if (this.seen.length < SIGHTS_MAX) this.seen.push({ box: this.#box.terminalCode, ...sight });
  }
}

/** The words of a screen without those that count down. */
function withoutTime(text = ''): string {
  return text.replaceAll(/\d+:\d\d\b|\d+ phút/g, '');
}
