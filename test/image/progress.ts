/** Tells, as it happens, what a test of minutes is doing: seconds since the tests began, and what. */
export function progress(what: string): void {
  process.stderr.write(`${(performance.now() / 1000).toFixed(0).padStart(5)} s  ${what}\n`);
}
