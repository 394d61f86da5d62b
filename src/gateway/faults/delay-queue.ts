import type { Clock } from '../../lib/clock.ts';

/** Delays at a time; one more releases the oldest at once. */
const DELAYED_MAX = 10_000;

/** Settles after `ms`, or as soon as `stop` aborts or it is released. Whether to go on; false when it is dropped. */
export type Wait = (ms: number, stop?: AbortSignal) => Promise<boolean>;

interface Delayed {
  /** The fault that delays; undefined for a delay by a content. */
  fault: object | undefined;
  over: AbortController;
  gone: () => void;
}

/** What faults delay. What is released together goes on in the order in which it came (PROTOCOL.md, clause FLT-11). */
export class DelayQueue {
  readonly #clock: Clock;
  readonly #delays = new Set<Delayed>();
  #isClosed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Begins a delay; `gone` is called once it is over. */
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

  /** Releases what a fault delays. */
  release(fault: object): void {
    for (const delay of this.#delays) if (delay.fault === fault) this.#release(delay);
  }

  releaseAll(): void {
    for (const delay of this.#delays) this.#release(delay);
  }

  /** Ends every delay, later ones too; what was delayed is dropped. */
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
