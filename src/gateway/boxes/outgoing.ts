import type { Clock } from '../../lib/clock.ts';

/** One more is not sent: a push is then withdrawn at its deadline, and what is durable comes again. */
const UNACKNOWLEDGED_MAX = 10_000;
/** A broker that acknowledges nothing for so long is lost, although it may answer pings. */
const ACKNOWLEDGE_TIMEOUT_MS = 15_000;

/** The messages that a broker has not acknowledged yet: how many, and for how long. */
export class Outgoing {
  readonly #clock: Clock;
  /** When each was sent, oldest first. */
  readonly #sentAtMs = new Map<object, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Why no further message can be sent; `stalled` when none ever will be. */
  problem(): { reason: string; stalled: boolean } | undefined {
    const [oldestMs] = this.#sentAtMs.values();
    const waitedMs = oldestMs === undefined ? 0 : this.#clock.monotonicMs() - oldestMs;
    if (waitedMs > ACKNOWLEDGE_TIMEOUT_MS) {
      return { reason: `a message is not acknowledged for ${ACKNOWLEDGE_TIMEOUT_MS} ms`, stalled: true };
    }
    if (this.#sentAtMs.size < UNACKNOWLEDGED_MAX) return undefined;
    return { reason: `${UNACKNOWLEDGED_MAX} messages are not acknowledged`, stalled: false };
  }

  /** Counts a message as under way until the returned function is called. */
  begin(): () => void {
    const key = {};
    this.#sentAtMs.set(key, this.#clock.monotonicMs());
    return () => this.#sentAtMs.delete(key);
  }
}
