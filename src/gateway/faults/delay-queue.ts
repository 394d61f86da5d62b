import type { Clock } from '../../lib/clock.ts';

/** At most this many delays are open. One more releases the oldest at once. */
const DELAYED_MAX = 10_000;

/** Waits for `ms`, until `stop` aborts, or until the release. Returns false if the delayed thing must be dropped. */
export type Wait = (ms: number, stop?: AbortSignal) => Promise<boolean>;

interface Delayed {
  /** The fault that delays. Undefined for a delay that a content has ordered. */
  fault: object | undefined;
  over: AbortController;
  gone: () => void;
}

/**
 * Holds the things that faults delay. If several are released together, they continue in the order in which they came
 * (PROTOCOL.md, clause FLT-11).
 */
export class DelayQueue {
  readonly #clock: Clock;
  readonly #delays = new Set<Delayed>();
  #isClosed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Begins a delay. `gone` is called when it ends. */
  add(fault: object | undefined, gone: () => void): Wait {
    const delay: Delayed = { fault, over: new AbortController(), gone };
    const [oldest] = this.#delays;
    if (oldest !== undefined && this.#delays.size >= DELAYED_MAX) this.#release(oldest);
    this.#delays.add(delay);
    if (this.#isClosed) this.#release(delay);
    return async (ms, stop) => {
      const { signal } = delay.over;
      await this.#clock.sleep(ms, stop === undefined ? signal : AbortSignal.any([signal, stop]));
      this.#release(delay);
      return !this.#isClosed;
    };
  }

  /** Ends the delays by this fault. */
  release(fault: object): void {
    for (const delay of this.#delays) if (delay.fault === fault) this.#release(delay);
  }

  releaseAll(): void {
    for (const delay of this.#delays) this.#release(delay);
  }

  /** Ends every delay, and all later ones. Everything delayed is dropped. */
  close(): void {
    this.#isClosed = true;
    this.releaseAll();
  }

  #release(delay: Delayed): void {
    if (!this.#delays.delete(delay)) return;
    delay.over.abort();
    delay.gone();
  }
}
