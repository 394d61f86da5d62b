/** The fields of a JSON object; none for anything else. */
export function recordOf(json: unknown): Readonly<Record<string, unknown>> {
  return typeof json === 'object' && json !== null && !Array.isArray(json) ? { ...json } : {};
}
