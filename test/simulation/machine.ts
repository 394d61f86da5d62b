import type { Clock } from '../../src/lib/clock.ts';
import type { VirtualClock } from '../../src/lib/virtual-clock.ts';

/** A calendar that may be wrong by hours, and stays so over restarts. */
export interface Calendar {
  offsetMs: number;
}

/**
 * One run of a program. Once it is killed nothing of it happens any more: its timers do not fire, and whatever it
 * still does in passing reaches no disk, no wire and no screen, because each of those asks `alive` first.
 */
export class Run implements Clock {
  readonly #world: VirtualClock;
  readonly #calendar: Calendar;
  readonly #startedAtMs: number;
  readonly #timers = new Set<() => void>();
  readonly #death = Promise.withResolvers<undefined>();
  #alive = true;

  constructor(world: VirtualClock, calendar: Calendar) {
    this.#world = world;
    this.#calendar = calendar;
    this.#startedAtMs = world.monotonicMs();
  }

  get alive(): boolean {
    return this.#alive;
  }

  /** Settles when the run is killed. */
  get death(): Promise<undefined> {
    return this.#death.promise;
  }

  kill(): void {
    this.#alive = false;
    for (const cancel of this.#timers) cancel();
    this.#timers.clear();
    this.#death.resolve(undefined);
  }

  monotonicMs(): number {
    return this.#world.monotonicMs() - this.#startedAtMs;
  }

  wallMs(): number {
    return Math.floor(this.#world.wallMs() + this.#calendar.offsetMs);
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (!this.#alive) return;
      if (signal?.aborted) {
        resolve();
        return;
      }
      const cancel = this.#world.after(ms, () => {
        this.#timers.delete(cancel);
        signal?.removeEventListener('abort', giveUp);
        resolve();
      });
      const giveUp = () => {
        cancel();
        this.#timers.delete(cancel);
        resolve();
      };
      this.#timers.add(cancel);
      signal?.addEventListener('abort', giveUp, { once: true });
    });
  }
}

/** What a killed program still waits for. */
export function never<T>(): Promise<T> {
  return new Promise<T>(() => undefined);
}
