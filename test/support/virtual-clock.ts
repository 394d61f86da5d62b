import { setImmediate as turn } from 'node:timers/promises';
import type { Clock } from '../../src/lib/clock.ts';

/** Turns of the event loop after each wake-up, for what it sets off. */
const TURNS = 5;

interface Sleeper {
  atMs: number;
  wake: () => void;
}

/** A clock that only goes on when a test says so. Sleepers wake in order, each at its own time. */
export class VirtualClock implements Clock {
  #nowMs = 0;
  readonly #startedAtMs: number;
  readonly #sleepers = new Set<Sleeper>();

  constructor(startedAtMs = Date.UTC(2026, 0, 2, 3, 4, 5)) {
    this.#startedAtMs = startedAtMs;
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  wallMs(): number {
    return this.#startedAtMs + this.#nowMs;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted) {
        resolve();
        return;
      }
      const wake = () => {
        this.#sleepers.delete(sleeper);
        signal?.removeEventListener('abort', wake);
        resolve();
      };
      const sleeper = { atMs: this.#nowMs + Math.max(0, ms), wake };
      this.#sleepers.add(sleeper);
      signal?.addEventListener('abort', wake, { once: true });
    });
  }

  /** How long until each sleeper wakes, in milliseconds, soonest first. */
  sleeping(): number[] {
    return [...this.#sleepers].map((it) => it.atMs - this.#nowMs).sort((a, b) => a - b);
  }

  /** Goes on by `ms` milliseconds. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#nowMs + ms;
    for (;;) {
      for (let i = 0; i < TURNS; i += 1) await turn();
      const [next] = [...this.#sleepers].sort((a, b) => a.atMs - b.atMs);
      if (next === undefined || next.atMs > untilMs) break;
      this.#nowMs = Math.max(this.#nowMs, next.atMs);
      next.wake();
    }
    this.#nowMs = untilMs;
  }
}
