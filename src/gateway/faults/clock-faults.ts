import type { Clock } from '../../lib/clock.ts';
import type { Faults } from './faults.ts';

const AHEAD_MS = 2 * 3_600_000;

/** Adds an offset to the calendar of a clock. Durations do not change. */
export class SettableClock implements Clock {
  readonly #clock: Clock;
  #aheadMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  monotonicMs(): number {
    return this.#clock.monotonicMs();
  }

  wallMs(): number {
    return this.#clock.wallMs() + this.#aheadMs;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return this.#clock.sleep(ms, signal);
  }

  /** Sets the calendar ahead of the real one by `ms`. */
  setAhead(ms: number): void {
    this.#aheadMs = ms;
  }
}

/** Connects the fault clock-skew with the clock (PROTOCOL.md, clause FLT-9). */
export function skewByFault(clock: SettableClock, faults: Faults): void {
  let active = 0;
  faults.onOrder('clock-skew', {
    begin: (ordered) => {
      active += 1;
      clock.setAhead(AHEAD_MS);
      ordered.onEnd(() => {
        active -= 1;
        if (active === 0) clock.setAhead(0);
      });
    },
  });
}
