import type { Clock } from '../../lib/clock.ts';
import type { LivingGateway } from './gateway-rows.ts';
import type { Holdings } from './holdings.ts';

/** A gateway asks again after this time who does some work of a run that lives, which keeps it until it ends. */
const ASK_AGAIN_MS = 10_000;
/** The same for a door, which a gateway may give up. */
const ASK_AGAIN_FOR_DOOR_MS = 900;

/** Takes work that one gateway does for all, and remembers who does it. */
export class Works {
  readonly #run: string;
  readonly #holdings: Pick<Holdings, 'takeWork' | 'giveUpWork'>;
  readonly #clock: Clock;
  readonly #gateways: () => readonly LivingGateway[];
  /** The run that does each work, as far as this one knows. */
  readonly #known = new Map<string, { run: string; askedMs: number }>();

  constructor(run: string, holdings: Holdings, clock: Clock, gateways: () => readonly LivingGateway[]) {
    this.#run = run;
    this.#holdings = holdings;
    this.#clock = clock;
    this.#gateways = gateways;
  }

  /** Returns whether this run does some work, which it takes if nobody does it. Never rejects. */
  async lease(work: string, askAgainMs = ASK_AGAIN_MS): Promise<boolean> {
    const known = this.#known.get(work);
    if (known?.run === this.#run) return true;
    const isFresh = known !== undefined && this.#clock.monotonicMs() - known.askedMs < askAgainMs;
    if (isFresh && this.#gateways().some(({ run }) => run === known.run)) return false;
    const holder = await this.#holdings.takeWork(work).catch(() => undefined);
    if (holder === undefined) this.#known.delete(work);
    else this.#known.set(work, { run: holder, askedMs: this.#clock.monotonicMs() });
    return holder === this.#run;
  }

  /**
   * Takes the doors of these lanes, and gives up those of other lanes, of which this run has `held` some. Returns the
   * lanes whose doors it has.
   */
  async doors(held: readonly number[], lanes: readonly number[]): Promise<number[]> {
    for (const lane of held.filter((it) => !lanes.includes(it))) {
      this.#known.delete(doorOf(lane));
      await this.#holdings.giveUpWork(doorOf(lane));
    }
    const doors: number[] = [];
    for (const lane of lanes) if (await this.lease(doorOf(lane), ASK_AGAIN_FOR_DOOR_MS)) doors.push(lane);
    return doors;
  }
}

function doorOf(lane: number): string {
  return `door/${lane}`;
}
