/** Returns the fields of a JSON object; empty for any other value. */
export function recordOf(json: unknown): Readonly<Record<string, unknown>> {
  return typeof json === 'object' && json !== null && !Array.isArray(json) ? { ...json } : {};
}
