import type { Clock } from '../../lib/clock.ts';

/** More is not held back at a time: one more has the oldest go on at once. */
const DELAYED_MAX = 10_000;

/** Waits until what is held goes on: after so long, or as soon as `stop` aborts or it is let go. Not when it is dropped. */
export type Wait = (ms: number, stop?: AbortSignal) => Promise<boolean>;

interface Delayed {
  /** Whose it is; undefined where it is a content's. */
  fault: object | undefined;
  over: AbortController;
  gone: () => void;
}

/** What faults hold back. What is let go at once goes on in the order in which it was held (PROTOCOL.md, clause FLT-11). */
export class DelayQueue {
  readonly #clock: Clock;
  readonly #held = new Set<Delayed>();
  #isClosed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Holds something, from this call on; `gone` is called once it is held no longer. */
  add(fault: object | undefined, gone: () => void): Wait {
    const held: Delayed = { fault, over: new AbortController(), gone };
    const [oldest] = this.#held;
    if (oldest !== undefined && this.#held.size >= DELAYED_MAX) this.#release(oldest);
    this.#held.add(held);
    if (this.#isClosed) this.#release(held);
    return async (ms, stop) => {
      const { signal } = held.over;
      await this.#clock.sleep(ms, stop === undefined ? signal : AbortSignal.any([signal, stop]));
      this.#release(held);
      return !this.#isClosed;
    };
  }

  /** Lets go what a fault holds. */
  release(fault: object): void {
    for (const held of this.#held) if (held.fault === fault) this.#release(held);
  }

  releaseAll(): void {
    for (const held of this.#held) this.#release(held);
  }

  /** Ends every wait, those to come too: what was held is dropped. */
  close(): void {
    this.#isClosed = true;
    this.releaseAll();
  }

  #release(held: Delayed): void {
    if (!this.#held.delete(held)) return;
    held.over.abort();
    held.gone();
  }
}
