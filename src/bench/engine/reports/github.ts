import { isAbsolute, join, relative } from 'node:path';
import type { Judged } from './result.ts';
import { escaped, oneLine, tookText } from './text.ts';

/** GitHub shows at most this many annotations of a step. */
const ANNOTATIONS_MAX = 10;
/** GitHub accepts a summary of 1 MiB, which this many rows do not exceed. */
const ROWS_MAX = 1_000;
const REASON_CHARS_MAX = 500;
const LEVELS: Partial<Record<Judged['outcome'], 'error' | 'warning'>> = {
  failed: 'error',
  missing: 'error',
  flaky: 'warning',
};
const SIGNS: Record<Judged['outcome'], string> = {
  passed: '✅',
  failed: '❌',
  flaky: '⚠️',
  skipped: '➖',
  missing: '❗',
};

/**
 * Returns workflow commands that mark the lines of scenarios in a pull request. `workspace` is the folder of the
 * checkout.
 */
export function annotationsOf(results: readonly Judged[], workspace: string): string {
  const lines = results.flatMap((result) => {
    const level = LEVELS[result.outcome];
    if (level === undefined) return [];
    const { scenario, where, reason, outcome } = result;
    const [, file = scenario.file, line] = /^(.+):(\d+)$/.exec(where ?? '') ?? [];
    const path = relative(workspace, join(scenario.source?.folder ?? '', file));
    const isInside = path !== '' && !path.startsWith('..') && !isAbsolute(path);
    const place = isInside ? { file: path, ...(line === undefined ? {} : { line }) } : {};
    const properties = Object.entries({ ...place, title: `${scenario.name}: ${outcome}` });
    const written = properties.map(([key, value]) => `${key}=${property(oneLine(value))}`).join(',');
    return [`::${level} ${written}::${data(oneLine(reason))}\n`];
  });
  return lines.slice(0, ANNOTATIONS_MAX).join('');
}

/** Returns the summary of a job in Markdown. */
export function summaryOf(results: readonly Judged[], { target, seed }: { target: string; seed: number }): string {
  const of = (outcome: Judged['outcome']) => results.filter((it) => it.outcome === outcome).length;
  const counts = Object.keys(SIGNS)
    .map((name) => name as Judged['outcome'])
    .filter((outcome) => of(outcome) > 0)
    .map((outcome) => `${of(outcome)} ${outcome}`);
  // Failures come first, because the rest may have no room.
  const sorted = results.toSorted((a, b) => Number(b.outcome in LEVELS) - Number(a.outcome in LEVELS));
  const rows = sorted.slice(0, ROWS_MAX).map(({ outcome, scenario, where, reason, tookMs }) => {
    const place = where === undefined || reason === '' ? '' : `<code>${cell(where)}</code> `;
    return `| ${SIGNS[outcome]} ${outcome} | ${cell(scenario.name)} | ${tookText(tookMs)} | ${place}${cell(reason)} |`;
  });
  const left = results.length - rows.length;
  return `### paybox bench: ${counts.join(', ') || 'nothing was judged'}

Target ${cell(target)}, seed ${seed}

| verdict | scenario | took | why |
|---|---|---|---|
${rows.join('\n')}
${left > 0 ? `\n${left} more have no room here.\n` : ''}
`;
}

/** Escapes text in a cell of a table, so that HTML and Markdown stay text. */
function cell(text: string): string {
  const short = oneLine(text).slice(0, REASON_CHARS_MAX);
  return escaped(short).replaceAll(/[\\`*_[\]|~@#!:]/g, (sign) => `&#${sign.charCodeAt(0)};`);
}

/** Escapes text as the runner reads it: https://github.com/actions/toolkit/blob/main/packages/core/src/command.ts. */
function data(text: string): string {
  return text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A');
}

function property(text: string): string {
  return data(text).replaceAll(':', '%3A').replaceAll(',', '%2C');
}
