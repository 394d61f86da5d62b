const UNITS_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, min: 60_000, h: 3_600_000 };
/** A time, for example `300ms`, `5s`, `2min` or `1h`. */
export const DURATION = /^(\d{1,9}(?:\.\d{1,3})?) ?(ms|s|min|h)$/;
const ONE = DURATION.source.slice(1, -1);
/** A time or a range of times, for example `5s` or `30s to 5min`. */
export const SPAN = new RegExp(`^${ONE}(?: to ${ONE})?$`);

/** Returns `300ms`, `5s`, `2min` or `1h` in milliseconds; undefined for anything else. */
export function durationMs(text: string): number | undefined {
  const [, number, unit = ''] = DURATION.exec(text) ?? [];
  const unitMs = UNITS_MS[unit];
  return number === undefined || unitMs === undefined ? undefined : Number(number) * unitMs;
}

/** Returns the shortest and longest time in milliseconds of `5s` or `30s to 5min`; undefined for anything else. */
export function spanMs(text: string): readonly [number, number] | undefined {
  const [fromMs, toMs = fromMs, ...more] = text.split(' to ').map(durationMs);
  if (fromMs === undefined || toMs === undefined || more.length > 0 || fromMs > toMs) return undefined;
  return [fromMs, toMs];
}
