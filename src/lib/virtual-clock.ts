import type { Clock } from './clock.ts';

/**
 * The clock waits this many turns of the event loop after each wake-up, so that its effects happen before time goes on.
 */
const TURNS = 5;

interface Sleeper {
  readonly atMs: number;
  /** Orders sleepers of the same time by age. */
  readonly number: number;
  /** Wakes the sleeper. It is undefined once the sleeper was woken or cancelled. */
  wake: (() => void) | undefined;
}

/**
 * Advances only on request. Sleepers wake in order, each at its own time.
 *
 * Theory. A scenario of hours must run in seconds, and twice alike. So nothing here depends on the machine's time: a heap
 * holds the sleepers, and whoever drives the clock moves it from one wake-up to the next.
 *
 * Invariants. Time never goes back. A sleeper wakes at its own time, never at the end of a longer advance. `advance`
 * lets the event loop turn between two wake-ups, because their effects (promises, ready I/O) decide who sleeps next.
 *
 * Tried and failed. A simulated heartbeat asked for less time than a floating-point number could add, so it asked again
 * forever. `after` now moves time for every positive wait. Work that leaves the process, such as files and child
 * programs, takes real time that this clock cannot see, and skipped time overtook it. Whoever skips time over such work
 * waits for it with `settled` and `isQuietFor` (`event-loop.ts`).
 */
export class VirtualClock implements Clock {
  #nowMs = 0;
  #count = 0;
  readonly #startedAtMs: number;
  /** Holds sleepers in a binary heap, soonest first. Cancelled ones stay in it until their time. */
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

  /**
   * Calls `wake` after `ms` milliseconds; the returned function cancels that. A positive `ms` always moves time, as
   * with a real timer. Otherwise a program that counts from its own start could ask for less than this clock can add,
   * and ask again forever.
   */
  after(ms: number, wake: () => void): () => void {
    this.#count += 1;
    const soonestMs = ms > 0 ? this.#nowMs * (1 + Number.EPSILON) : this.#nowMs;
    const sleeper: Sleeper = { atMs: Math.max(soonestMs, this.#nowMs + ms), number: this.#count, wake };
    this.#push(sleeper);
    return () => {
      sleeper.wake = undefined;
    };
  }

  /** Returns the milliseconds until each sleeper wakes, soonest first. */
  sleeping(): number[] {
    const awaited = this.#heap.filter((it) => it.wake !== undefined);
    return awaited.map((it) => it.atMs - this.#nowMs).sort((a, b) => a - b);
  }

  /** Advances by `ms` milliseconds. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#nowMs + ms;
    do {
      for (let i = 0; i < TURNS; i += 1) await turn();
    } while (this.step(untilMs));
    this.#nowMs = untilMs;
  }

  /** Advances to the next sleeper and wakes it, unless its time is after `untilMs`; returns whether there was one. */
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

/** Runs all work that waits only for promises and ready I/O. */
export function turn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

function isSooner(a: Sleeper | undefined, b: Sleeper | undefined): boolean {
  if (a === undefined || b === undefined) return a !== undefined;
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.number < b.number);
}
