import type { Clock } from './clock.ts';

/** Turns of the event loop after each wake-up, for what it sets off. */
const TURNS = 5;

interface Sleeper {
  readonly atMs: number;
  /** Orders those of one instant by their age. */
  readonly number: number;
  /** Undefined once it was woken or given up. */
  wake: (() => void) | undefined;
}

/** A clock that only goes on when it is told to. Sleepers wake in order, each at its own time. */
export class VirtualClock implements Clock {
  #nowMs = 0;
  #count = 0;
  readonly #startedAtMs: number;
  /** A binary heap, the soonest first; those given up stay in it until their time. */
  readonly #heap: Sleeper[] = [];

  constructor(startedAtMs = Date.UTC(2026, 0, 2, 3, 4, 5)) {
    this.#startedAtMs = startedAtMs;
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  wallMs(): number {
    return Math.floor(this.#startedAtMs + this.#nowMs);
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted) {
        resolve();
        return;
      }
      const cancel = this.after(ms, () => {
        signal?.removeEventListener('abort', giveUp);
        resolve();
      });
      const giveUp = () => {
        cancel();
        resolve();
      };
      signal?.addEventListener('abort', giveUp, { once: true });
    });
  }

  /** Calls `wake` after `ms` milliseconds unless the returned function is called before. */
  after(ms: number, wake: () => void): () => void {
    this.#count += 1;
    const sleeper: Sleeper = { atMs: this.#nowMs + Math.max(0, ms), number: this.#count, wake };
    this.#push(sleeper);
    return () => {
      sleeper.wake = undefined;
    };
  }

  /** How long until each sleeper wakes, in milliseconds, soonest first. */
  sleeping(): number[] {
    const awaited = this.#heap.filter((it) => it.wake !== undefined);
    return awaited.map((it) => it.atMs - this.#nowMs).sort((a, b) => a - b);
  }

  /** Goes on by `ms` milliseconds. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#nowMs + ms;
    do {
      for (let i = 0; i < TURNS; i += 1) await turn();
    } while (this.step(untilMs));
    this.#nowMs = untilMs;
  }

  /** Goes on to the next sleeper and wakes it, if its time is not after `untilMs`; whether there was one. */
  step(untilMs = Number.POSITIVE_INFINITY): boolean {
    for (;;) {
      const [next] = this.#heap;
      if (next === undefined || (next.wake !== undefined && next.atMs > untilMs)) return false;
      this.#popFirst();
      if (next.wake === undefined) continue;
      this.#nowMs = Math.max(this.#nowMs, next.atMs);
      const { wake } = next;
      next.wake = undefined;
      wake();
      return true;
    }
  }

  #push(sleeper: Sleeper): void {
    const heap = this.#heap;
    let at = heap.length;
    heap.push(sleeper);
    while (at > 0) {
      const above = (at - 1) >> 1;
      if (!isSooner(sleeper, heap[above])) break;
      heap[at] = heap[above] as Sleeper;
      at = above;
    }
    heap[at] = sleeper;
  }

  #popFirst(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let at = 0;
    for (;;) {
      let below = 2 * at + 1;
      if (isSooner(heap[below + 1], heap[below])) below += 1;
      if (!isSooner(heap[below], last)) break;
      heap[at] = heap[below] as Sleeper;
      at = below;
    }
    heap[at] = last;
  }
}

/** Lets everything that waits for no more than promises and ready I/O go on. */
export function turn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

function isSooner(a: Sleeper | undefined, b: Sleeper | undefined): boolean {
  if (a === undefined || b === undefined) return a !== undefined;
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.number < b.number);
}
