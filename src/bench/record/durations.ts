const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

/** Milliseconds as a scenario says them, in the largest unit that leaves nothing over: `300ms`, `5s`, `2min`, `1h`. */
export function durationText(ms: number): string {
  if (ms % HOUR_MS === 0 && ms > 0) return `${ms / HOUR_MS}h`;
  if (ms % MINUTE_MS === 0 && ms > 0) return `${ms / MINUTE_MS}min`;
  return ms % SECOND_MS === 0 ? `${ms / SECOND_MS}s` : `${Math.round(ms)}ms`;
}
