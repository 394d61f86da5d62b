/** Vietnam has had one time zone since 1975, without daylight saving. */
const AHEAD_MS = 7 * 3_600_000;

/** Returns the calendar time in Vietnam, as `2026-01-05 09:10:11`. */
export function vietnamTime(wallMs: number): string {
  return new Date(wallMs + AHEAD_MS).toISOString().slice(0, 19).replace('T', ' ');
}

/** Returns the day in Vietnam, as `2026-01-05`. */
export function vietnamDay(wallMs: number): string {
  return vietnamTime(wallMs).slice(0, 10);
}
