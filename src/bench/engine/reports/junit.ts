import type { ReportRow } from './result.ts';
import { escaped, failureLines, tookText } from './text.ts';

/** The output of a test case has at most this many steps. The HTML report has all of them. */
const STEPS_MAX = 200;

/**
 * Returns JUnit XML for the reporters of Jenkins, GitLab and GitHub: one test suite for the target, one test case for
 * each scenario. A missing precondition is an error, an unmet expectation a failure.
 */
export function junitOf(results: readonly ReportRow[], { startedAtMs }: { startedAtMs: number }): string {
  const of = (outcome: ReportRow['outcome']) => results.filter((it) => it.outcome === outcome).length;
  const seconds = (ms: number) => (ms / 1_000).toFixed(3);
  const total = results.reduce((sum, { tookMs }) => sum + tookMs, 0);
  const counts = `tests="${results.length}" failures="${of('failed')}" errors="${of('missing')}"`;
  const [first] = results;
  const timestamp = new Date(startedAtMs).toISOString().replace(/\.\d+Z$/, '');
  const suite = `${counts} skipped="${of('skipped') + of('differs')}" time="${seconds(total)}"`;
  const lines = [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites name="paybox bench" ${counts} time="${seconds(total)}">`,
    `  <testsuite name="${escaped(first?.target ?? 'none')}" ${suite} timestamp="${timestamp}">`,
    '    <properties>',
    `      <property name="seed" value="${first?.seed ?? 0}"/>`,
    ...(of('flaky') === 0 ? [] : [`      <property name="flaky" value="${of('flaky')}"/>`]),
    '    </properties>',
    ...results.flatMap((result) => {
      const { scenario, tookMs } = result;
      const names = `name="${escaped(scenario.name)}" classname="${escaped(scenario.file.replace(/\.ya?ml$/, ''))}"`;
      const open = `    <testcase ${names} file="${escaped(scenario.file)}" time="${seconds(tookMs)}"`;
      const verdict = verdictOf(result);
      const output = outputOf(result);
      const inside = [propertiesOf(result), verdict, output].filter((it) => it !== undefined && it !== '');
      return inside.length === 0 ? [`${open}/>`] : [`${open}>`, ...inside, '    </testcase>'];
    }),
    '  </testsuite>',
    '</testsuites>',
  ];
  return `${lines.join('\n')}\n`;
}

/**
 * Marks a test case that passed only when it ran again. The format has no outcome for it, so it is a passed test case
 * with properties.
 */
function propertiesOf({ outcome, reason, earlier = [] }: ReportRow): string | undefined {
  if (outcome !== 'flaky') return undefined;
  const of = (name: string, value: string) => `        <property name="${name}" value="${escaped(value)}"/>`;
  const properties = [of('flaky', 'true'), of('runs', `${earlier.length + 1}`), of('flakyFailure', reason)];
  return `      <properties>\n${properties.join('\n')}\n      </properties>`;
}

function verdictOf({ outcome, reason, where, failure }: ReportRow): string | undefined {
  if (outcome === 'passed' || outcome === 'flaky') return undefined;
  const message = escaped(reason);
  if (outcome === 'skipped') return `      <skipped message="${message}"/>`;
  // The format has no outcome between passed and failed, so `differs` is a skip with a message.
  if (outcome === 'differs') return `      <skipped message="differs: ${message}"/>`;
  const place = where === undefined ? '' : `${escaped(where)}: `;
  const tag = outcome === 'failed' ? 'failure' : 'error';
  const detail =
    failure === undefined
      ? ''
      : failureLines(failure)
          .map((line) => `\n${escaped(line)}`)
          .join('');
  return `      <${tag} message="${message}" type="${outcome}">${place}${message}${detail}</${tag}>`;
}

function outputOf({ entries }: ReportRow): string {
  const steps = entries.filter(({ kind }) => kind !== 'status' && kind !== 'screen').slice(0, STEPS_MAX);
  if (steps.length === 0) return '';
  const lines = steps.map(({ atMs, kind, title }) => escaped(`${tookText(atMs)}  ${kind}  ${title}`));
  return `      <system-out>${lines.join('\n')}</system-out>`;
}
