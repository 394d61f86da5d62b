import type { Clock } from '../../../lib/clock.ts';
import type { BoxFaults } from './box-faults.ts';

const AHEAD_MS = 2 * 3_600_000;

/** Returns a clock whose calendar runs ahead while the fault box-clock is active. Durations stay correct. */
export function faultyClock(clock: Clock, faults: BoxFaults): Clock {
  return {
    monotonicMs: () => clock.monotonicMs(),
    wallMs: () => clock.wallMs() + (faults.isThere('box-clock') ? AHEAD_MS : 0),
    sleep: (ms, signal) => clock.sleep(ms, signal),
  };
}
