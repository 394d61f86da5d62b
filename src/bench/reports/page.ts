import { createHash } from 'node:crypto';
import type { Entry } from '../evidence.ts';
import type { Result } from '../run.ts';
import { percentilesSvg } from './percentiles.ts';
import { escaped, tookText } from './text.ts';

const STYLE = `
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid #8884; padding: .3rem .6rem; text-align: left; vertical-align: top; }
td { overflow-wrap: anywhere; }
td:first-child { white-space: nowrap; text-align: right; font-variant-numeric: tabular-nums; }
pre { margin: .3rem 0; max-width: 100%; overflow-x: auto; white-space: pre-wrap; word-break: break-word; font-size: 12px; }
img { border: 1px solid #8888; max-width: 20rem; display: block; }
section { margin-top: 2.5rem; }
svg text { font: 12px system-ui, sans-serif; fill: currentColor; }
svg rect { fill: #3a7bd5; }
figure { display: inline-block; margin: 1rem 2rem 0 0; }
.passed { color: #1a8a3a; } .failed, .missing, .problem { color: #c62828; } .skipped { color: #888; } .differs { color: #b26a00; }
.problem td { font-weight: bold; }
`;

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

function latencies(results: readonly Result[]): string {
  const all = new Map<string, number[]>();
  for (const result of results) {
    for (const [what, values] of result.latencies) all.set(what, [...(all.get(what) ?? []), ...values]);
  }
  return [...all].map(([what, values]) => percentilesSvg(what, values)).join('\n');
}

function section({ scenario, outcome, reason, where, entries, entriesLeft }: Result, index: number): string {
  const verdict = reason === '' ? outcome : `${outcome}: ${reason}${where === undefined ? '' : ` (${where})`}`;
  const left = entriesLeft === 0 ? '' : `<p>${entriesLeft} more entries had no room.</p>`;
  return `<section id="s${index + 1}">
<h2>${escaped(scenario.name)}</h2>
<p>${escaped(scenario.file)}. ${escaped(scenario.about ?? '')}</p>
<p class="${outcome}">${escaped(verdict)}</p>
${timelineOf(entries)}${left}
</section>`;
}

/** What happened, in order. */
export function timelineOf(entries: readonly Entry[]): string {
  return `<table><tbody>
${entries.map(row).join('\n')}
</tbody></table>`;
}

function row({ atMs, kind, title, detail, picture, qr }: Entry): string {
  const told =
    detail === undefined ? '' : `<details><summary>all of it</summary><pre>${escaped(json(detail))}</pre></details>`;
  const image =
    picture === undefined ? '' : `<img alt="the screen" src="data:${typeOf(picture)};base64,${base64(picture)}">`;
  const read = qr === undefined ? '' : `<pre>${qr === null ? 'no QR' : `QR: ${escaped(qr)}`}</pre>`;
  return `<tr class="${kind}"><td>${tookText(atMs)}</td><td>${kind}</td><td>${escaped(title)}${told}${image}${read}</td></tr>`;
}

function json(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value, undefined, 1);
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64');
}

const JPEG_START = 0xff;

function typeOf([first]: Uint8Array): string {
  return first === JPEG_START ? 'image/jpeg' : 'image/png';
}
