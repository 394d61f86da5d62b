import type { ReportRow } from './result.ts';
import { oneLine } from './text.ts';

/** The directives of TAP 14: for a test that is not run, and for one whose failure is known. */
const DIRECTIVES: Partial<Record<ReportRow['outcome'], string>> = { skipped: 'SKIP', differs: 'TODO' };

/**
 * Returns a report in TAP version 14: one test point for each scenario, with a YAML block for details. No library
 * replaces it: `supertap` writes version 13 and brings four packages.
 */
export function tapOf(results: readonly ReportRow[]): string {
  const lines = ['TAP version 14', `1..${results.length}`, ...results.flatMap(pointOf)];
  return `${lines.join('\n')}\n`;
}

function pointOf(result: ReportRow, index: number): string[] {
  const { outcome, scenario, reason, where, target, seed, tookMs } = result;
  const isOk = outcome === 'passed' || outcome === 'skipped' || outcome === 'flaky';
  const directive = DIRECTIVES[outcome];
  const told = directive === undefined ? '' : ` # ${directive} ${description(reason)}`;
  const point = `${isOk ? 'ok' : 'not ok'} ${index + 1} - ${description(scenario.name)}${told}`;
  if (isOk && outcome !== 'flaky') return [point];
  const block = {
    message: oneLine(reason),
    severity: { flaky: 'flaky', failed: 'fail', missing: 'missing', differs: 'todo' }[outcome],
    at: where ?? scenario.file,
    target,
    seed,
    duration_ms: Math.round(tookMs),
  };
  // Every JSON scalar is a YAML scalar.
  const details = Object.entries(block).map(([key, value]) => `  ${key}: ${JSON.stringify(value)}`);
  return [point, '  ---', ...details, '  ...'];
}

/** Escapes a hash, which would begin a directive. */
function description(text: string): string {
  return oneLine(text).replaceAll('\\', '\\\\').replaceAll('#', '\\#');
}
