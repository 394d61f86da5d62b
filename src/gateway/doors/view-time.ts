/** Returns a time as lists have it, in ISO 8601 and UTC. */
export function time(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}
