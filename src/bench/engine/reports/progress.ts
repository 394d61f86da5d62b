import type { ReportRow } from './result.ts';
import { failureLines, oneLine, tookText } from './text.ts';

/** Receives the progress of a run. */
export interface Progress {
  begin(name: string, number: number, of: number): void;
  step(title: string): void;
  end(result: ReportRow): void;
  /** Reports that a report file was written. `kind` is the name of its option. */
  report(kind: string, path: string): void;
  finish(results: readonly ReportRow[], exitCode: number): void;
}

export interface TerminalStream {
  write(text: string): unknown;
  isTTY?: boolean;
  columns?: number;
}

interface Streams {
  /** Lines with stable markers for programs. */
  out: { write(text: string): unknown };
  /** One live line for people on a terminal, otherwise plain lines. */
  err: TerminalStream;
}

const CLEAR_LINE = '\r\u001b[2K';
const COLUMNS = 80;
const SIGNS: Record<ReportRow['outcome'], string> = {
  passed: '✓',
  failed: '✗',
  skipped: '-',
  missing: '!',
  differs: '~',
  flaky: '≈',
};

/** Writes one terminal line that each update overwrites. Writes nothing when `out` is not a terminal. */
export function liveLine(out: TerminalStream) {
  const isLive = out.isTTY === true;
  return {
    isLive,
    show: (text: string) => {
      if (isLive) out.write(`${CLEAR_LINE}${oneLine(text).slice(0, (out.columns ?? COLUMNS) - 1)}`);
    },
    clear: () => {
      if (isLive) out.write(CLEAR_LINE);
    },
  };
}

/** Returns a receiver that writes `PAYBOX-BENCH …` lines to standard output and progress to standard error. */
export function progressOn(
  { out, err }: Streams,
  { target, seed, what = 'scenarios' }: { target: string; seed: number; what?: 'scenarios' | 'checks' },
): Progress {
  const { show: live, clear } = liveLine(err);
  let head = '';
  const mark = (kind: string, fields: Readonly<Record<string, string | number>>) => {
    const words = Object.entries(fields).map(([key, value]) => `${key}=${quoted(value)}`);
    out.write(`PAYBOX-BENCH ${[kind, ...words].join(' ')}\n`);
  };
  return {
    begin: (name, number, of) => {
      clear();
      if (number === 1) mark('START', { [what]: of, target, seed });
      mark('BEGIN', { number, name });
      head = `[${number}/${of}] ${name}`;
      live(head);
    },
    step: (title) => live(`${head}  ${title}`),
    end: ({ outcome, scenario, reason, where, failure, tookMs, earlier = [] }) => {
      clear();
      const place = where === undefined ? {} : { where };
      mark('RESULT', {
        outcome,
        name: scenario.name,
        tookMs: Math.round(tookMs),
        ...(earlier.length === 0 ? {} : { runs: earlier.length + 1 }),
        ...(reason === '' ? {} : { reason }),
        ...place,
      });
      const why = reason === '' ? '' : `\n    ${where === undefined ? '' : `${where}: `}${oneLine(reason)}`;
      const told = outcome === 'flaky' ? 'flaky: ' : '';
      err.write(`${SIGNS[outcome]} ${told}${oneLine(scenario.name)} (${tookText(tookMs)})${why}\n`);
      for (const line of failure === undefined ? [] : failureLines(failure)) err.write(`    ${line}\n`);
    },
    report: (kind, path) => mark('REPORT', { kind, path }),
    finish: (results, exitCode) => {
      const of = (outcome: ReportRow['outcome']) => results.filter((it) => it.outcome === outcome).length;
      const counts = { passed: of('passed'), failed: of('failed'), skipped: of('skipped'), missing: of('missing') };
      const rare = (['flaky', 'differs'] as const).filter((outcome) => of(outcome) > 0);
      const all = { ...counts, ...Object.fromEntries(rare.map((outcome) => [outcome, of(outcome)])) };
      mark('END', { ...all, exit: exitCode });
      const told = Object.entries(all)
        .filter(([, count]) => count > 0)
        .map(([outcome, count]) => `${count} ${outcome}`)
        .join(', ');
      const isJudged = results.some(({ outcome }) => outcome !== 'skipped');
      const said = isJudged ? told : ['nothing was judged', told].filter((it) => it !== '').join(': ');
      err.write(`${said}; target ${target}, seed ${seed}\n`);
    },
  };
}

function quoted(value: string | number): string {
  const text = oneLine(String(value));
  return /^[\w.:/-]+$/.test(text) ? text : JSON.stringify(text);
}
