import { createHash } from 'node:crypto';
import { percentileTable } from './percentiles.ts';
import type { ReportRow } from './result.ts';
import { escaped, failureLines, tookText } from './text.ts';
import { timelineOf } from './timeline.ts';
import { TRACE_STYLE, traceOf } from './trace.ts';

/** The style of every report page, light and dark. Rows and filters of a timeline use the same colour for each kind. */
const STYLE = `
:root { color-scheme: light dark; --line: #8883; --soft: #8881; --step: #5b6b7b; --call: #3a6fc4; --service: #2a8f8f;
  --message: #8a5cc2; --callback: #b26a00; --status: #7a7a7a; --screen: #1a8a3a; --problem: #c62828; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid var(--line); padding: .25rem .6rem; text-align: left; vertical-align: top; }
td, p { overflow-wrap: anywhere; }
td:first-child { white-space: nowrap; text-align: right; font-variant-numeric: tabular-nums; }
.latencies { width: auto; margin-top: 1rem; } .latencies td { text-align: right; } .latencies td:first-child { text-align: left; }
pre { margin: .3rem 0; max-width: 100%; overflow-x: auto; white-space: pre-wrap; word-break: break-word; font-size: 12px; }
img { border: 1px solid #8888; max-width: 20rem; display: block; }
section { margin-top: 2.5rem; }
summary { cursor: pointer; } pre { font-weight: normal; }
.passed { color: #1a8a3a; } .failed, .missing, .problem { color: #c62828; } .skipped { color: #888; } .differs, .flaky { color: #b26a00; }
.timeline td:nth-child(2) { width: 5.5rem; font-size: 12px; white-space: nowrap; border-left: 3px solid var(--kind, transparent);
  color: var(--kind); }
.timeline tr.step td { background: var(--soft); font-weight: 600; } .timeline tr.problem td { font-weight: bold; }
.timeline tr.message td:last-child { white-space: pre-wrap; }
.filters { display: flex; flex-wrap: wrap; gap: .4rem; margin: .6rem 0; font-size: 13px; }
.filters label { border: 1px solid var(--kind); color: var(--kind); border-radius: 1rem; padding: 0 .6rem 0 .3rem; }
${TRACE_STYLE}
${kinds('step', 'call', 'service', 'message', 'callback', 'status', 'screen', 'problem')}
`;

/** The page loads nothing and runs no script, so that text from screens and payers stays text. */
const POLICY = `default-src 'none'; img-src data:; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`;

/** Returns the whole run as one self-contained page: verdicts, timelines, screens, messages and latencies. */
export function pageOf(results: readonly ReportRow[], { startedAtMs }: { startedAtMs: number }): string {
  const [first] = results;
  const about = `target ${first?.target ?? 'none'}, seed ${first?.seed ?? 0}, ${new Date(startedAtMs).toISOString()}`;
  const rows = results.map(
    ({ scenario, outcome, tookMs, reason }, index) =>
      `<tr><td>${index + 1}</td><td><a href="#s${index + 1}">${escaped(scenario.name)}</a></td>` +
      `<td class="${outcome}">${outcome}</td><td>${tookText(tookMs)}</td><td>${escaped(reason)}</td></tr>`,
  );
  return documentOf(
    'paybox bench',
    `<p>${escaped(about)}</p>
<table><thead><tr><th></th><th>scenario</th><th>verdict</th><th>took</th><th>why</th></tr></thead>
<tbody>${rows.join('\n')}</tbody></table>
${latencies(results)}
${results.map(section).join('\n')}`,
  );
}

/** Returns a self-contained page. `body` is HTML. */
export function documentOf(title: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="content-security-policy" content="${escaped(POLICY)}">
<meta name="viewport" content="width=device-width">
<link rel="icon" href="data:,">
<title>${escaped(title)}</title>
<style>${STYLE}</style>
</head>
<body>
<h1>${escaped(title)}</h1>
${body}
</body>
</html>
`;
}

function latencies(results: readonly ReportRow[]): string {
  const all = new Map<string, number[]>();
  for (const result of results) {
    for (const [what, values] of result.latencies) all.set(what, [...(all.get(what) ?? []), ...values]);
  }
  return percentileTable(all);
}

function section(result: ReportRow, index: number): string {
  const { scenario, earlier = [] } = result;
  const id = `s${index + 1}`;
  const before = earlier.map(
    (run, at) => `<details><summary class="${run.outcome}">run ${at + 1}: ${escaped(verdictOf(run))}</summary>
${evidenceOf(run, `${id}-run${at + 1}`)}</details>`,
  );
  return `<section id="${id}">
<h2>${escaped(scenario.name)}</h2>
<p>${escaped(scenario.file)}. ${escaped(scenario.about ?? '')}</p>
<p class="${result.outcome}">${escaped(verdictOf(result))}${placeIn(result, id)}</p>
${evidenceOf(result, id)}
${before.join('\n')}
</section>`;
}

function verdictOf({ outcome, reason, where }: ReportRow): string {
  return reason === '' ? outcome : `${outcome}: ${reason}${where === undefined ? '' : ` (${where})`}`;
}

function problemOf({ entries, reason }: ReportRow) {
  return entries.find(({ kind, title }) => kind === 'problem' && title === reason);
}

function placeIn(result: ReportRow, id: string): string {
  return problemOf(result) === undefined ? '' : ` <a href="#${id}-problem">where it happened</a>`;
}

/** Returns the trace and the timeline of one run. */
function evidenceOf(result: ReportRow, id: string): string {
  const { entries, entriesOmitted, failure } = result;
  const problem = problemOf(result);
  const left = entriesOmitted === 0 ? '' : `<p>${entriesOmitted} more entries had no room.</p>`;
  const source = failure === undefined ? '' : `<pre class="source">${escaped(failureLines(failure).join('\n'))}</pre>`;
  return `${source}${traceOf(entries, id)}${timelineOf(entries, { id, problem })}${left}`;
}

/** Returns the CSS of these kinds: their colours, and the rules that hide the rows whose filter is off. */
function kinds(...names: string[]): string {
  return names
    .map(
      (name) =>
        `.timeline tr.${name}, .filters label.${name} { --kind: var(--${name}); } ` +
        `section:has(.filters label.${name} input:not(:checked)) .timeline tr.${name} { display: none; }`,
    )
    .join('\n');
}
