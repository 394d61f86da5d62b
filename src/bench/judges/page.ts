import { documentOf } from '../engine/reports/page.ts';
import { escaped, tookText } from '../engine/reports/text.ts';
import { timelineOf } from '../engine/reports/timeline.ts';
import { type CheckResult, groupByClause } from './check.ts';
import type { TargetResults } from './suite.ts';

const LEVELS = { spec: 'must', gap: 'our default' } as const;

/** Returns a self-contained page with the verdicts by clause, and with requests and answers. */
export function conformancePage(judged: readonly TargetResults[], { startedAtMs }: { startedAtMs: number }): string {
  const about = `<p>${escaped(new Date(startedAtMs).toISOString())}. Where the specification says nothing, the clause is a
default of PROTOCOL.md: another choice differs, and fails only in a strict run.</p>`;
  return documentOf('paybox judge', [about, ...judged.map(partOf)].join('\n'));
}

function partOf(judged: TargetResults, part: number): string {
  const { target, results } = judged;
  const clauses = groupByClause(results);
  const rows = clauses.flatMap(({ clause, outcome, checks }) =>
    checks.map((check, index) => {
      const head =
        index === 0 ? `<td>${escaped(clause)}</td><td class="${outcome}">${outcome}</td>` : '<td></td><td></td>';
      const anchor = anchorOf(part, results, check);
      const link =
        check.evidence.entries.length === 0 ? escaped(check.title) : `<a href="#${anchor}">${escaped(check.title)}</a>`;
      return (
        `<tr>${head}<td>${link}</td><td>${LEVELS[check.level]}</td>` +
        `<td class="${check.outcome}">${check.outcome}</td><td>${escaped(check.reason)}</td></tr>`
      );
    }),
  );
  return `<h2>${escaped(target)}</h2>
<table><thead><tr><th>clause</th><th></th><th>check</th><th>level</th><th>verdict</th><th>why</th></tr></thead>
<tbody>
${rows.join('\n')}
</tbody></table>
${notJudgedTable(judged)}
${results.map((result) => section(anchorOf(part, results, result), result)).join('\n')}`;
}

function notJudgedTable({ notJudged = [] }: TargetResults): string {
  if (notJudged.length === 0) return '';
  const rows = notJudged.map(
    ({ clauses, why }) => `<tr><td>${escaped(clauses.join(', '))}</td><td>${escaped(why)}</td></tr>`,
  );
  return `<table><thead><tr><th>not judged</th><th>why</th></tr></thead>
<tbody>
${rows.join('\n')}
</tbody></table>`;
}

function anchorOf(part: number, results: readonly CheckResult[], result: CheckResult): string {
  return `c${part + 1}-${results.indexOf(result) + 1}`;
}

function section(anchor: string, { clause, title, outcome, reason, tookMs, evidence }: CheckResult): string {
  const { entries, omitted } = evidence;
  if (entries.length === 0) return '';
  const verdict = reason === '' ? outcome : `${outcome}: ${reason}`;
  const more = omitted === 0 ? '' : `<p>${omitted} more entries had no room.</p>`;
  return `<section id="${anchor}">
<h2>${escaped(clause)}</h2>
<p>${escaped(title)}</p>
<p class="${outcome}">${escaped(verdict)} (${tookText(tookMs)})</p>
${timelineOf(entries)}${more}
</section>`;
}
