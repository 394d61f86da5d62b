/** A time as the lists tell it: ISO 8601 in UTC. */
export function time(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}
