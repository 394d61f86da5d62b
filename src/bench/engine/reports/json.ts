import type { Judged, Result } from './result.ts';

/** Returns the verdicts as one JSON document for programs. */
export function jsonOf(
  results: readonly Judged[],
  { target, seed, startedAtMs }: { target: string; seed: number; startedAtMs: number },
): string {
  const of = (outcome: Judged['outcome']) => results.filter((it) => it.outcome === outcome).length;
  const report = {
    target,
    seed,
    startedAt: new Date(startedAtMs).toISOString(),
    passed: of('passed'),
    failed: of('failed'),
    flaky: of('flaky'),
    skipped: of('skipped'),
    missing: of('missing'),
    scenarios: results.map((result) => ({ ...viewOf(result), earlier: result.earlier.map(viewOf) })),
  };
  return `${JSON.stringify(report, undefined, 2)}\n`;
}

function viewOf({ scenario: { name, file }, outcome, reason, where, seed, tookMs }: Result | Judged) {
  return { name, file, outcome, reason, where: where ?? null, seed, tookMs: Math.round(tookMs) };
}
