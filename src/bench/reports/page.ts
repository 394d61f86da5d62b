import { createHash } from 'node:crypto';
import type { Result } from '../run/run.ts';
import { percentilesSvg } from './percentiles.ts';
import { STYLE } from './style.ts';
import { escaped, tookText } from './text.ts';
import { timelineOf } from './timeline.ts';

/** Nothing is loaded, nothing runs: what a screen or a payer's text says stays text. */
const POLICY = `default-src 'none'; img-src data:; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`;

/** The whole run as one page that needs nothing else: verdicts, timelines, screens, messages and latencies. */
export function pageOf(results: readonly Result[], { startedAtMs }: { startedAtMs: number }): string {
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

/** A page that needs nothing else; `body` is HTML. */
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

/** Fewer are no distribution. */
const DISTRIBUTED_MIN = 4;

function latencies(results: readonly Result[]): string {
  const all = new Map<string, number[]>();
  for (const result of results) {
    for (const [what, values] of result.latencies) all.set(what, [...(all.get(what) ?? []), ...values]);
  }
  const few = [...all].filter(([, values]) => values.length < DISTRIBUTED_MIN);
  const told = few.map(([what, values]) => `${escaped(what)}: ${values.map(tookText).join(', ')}`);
  const pictures = [...all].filter(([, values]) => values.length >= DISTRIBUTED_MIN);
  return [
    ...(told.length === 0 ? [] : [`<p>${told.join('; ')}</p>`]),
    ...pictures.map(([what, values]) => percentilesSvg(what, values)),
  ].join('\n');
}

function section({ scenario, outcome, reason, where, entries, entriesOmitted }: Result, index: number): string {
  const verdict = reason === '' ? outcome : `${outcome}: ${reason}${where === undefined ? '' : ` (${where})`}`;
  const id = `s${index + 1}`;
  const problem = entries.find(({ kind, title }) => kind === 'problem' && title === reason);
  const marked = problem && { entry: problem, id: `${id}-problem` };
  const place = marked === undefined ? '' : ` <a href="#${marked.id}">where it happened</a>`;
  const left = entriesOmitted === 0 ? '' : `<p>${entriesOmitted} more entries had no room.</p>`;
  return `<section id="${id}">
<h2>${escaped(scenario.name)}</h2>
<p>${escaped(scenario.file)}. ${escaped(scenario.about ?? '')}</p>
<p class="${outcome}">${escaped(verdict)}${place}</p>
${timelineOf(entries, marked)}${left}
</section>`;
}
