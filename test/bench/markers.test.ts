import { describe, expect, it } from 'vitest';
import { progressOn } from '../../src/bench/engine/reports/progress.ts';
import { payboxToEnd } from '../support/processes.ts';
import { HOSTILE, resultsOf } from './results.ts';

/** What a run of every outcome says on standard output. */
function markers(): string[] {
  const lines: string[] = [];
  const streams = { out: { write: (text: string) => lines.push(text) }, err: { write: () => true } };
  const results = resultsOf();
  const progress = progressOn(streams, { target: 'emulated', seed: 7 });
  for (const [index, result] of results.entries()) {
    progress.begin(result.scenario.name, index + 1, results.length);
    progress.end(result);
  }
  for (const kind of ['junit', 'tap', 'report']) progress.report(kind, `a folder/${HOSTILE}`);
  progress.finish(results, 1);
  return lines;
}

/** `KIND` and the fields of a marker, in as many lines as they need; a field that may be left out is in brackets. */
const documented = (help: string) =>
  [...help.matchAll(/^ {2}PAYBOX-BENCH ([A-Z]+) (.*(?:\n {2}(?!PAYBOX)\S.*)*)$/gm)].map(([, kind, fields = '']) => ({
    kind,
    fields: fields.split(/\s+/).map((field) => field.replace(/=[^\]]*/, '')),
  }));

describe('lines for programs', () => {
  it('a marker for programs is one line, whatever a scenario is called, and can be read back', () => {
    const lines = markers();
    for (const line of lines) expect(line).toMatch(/^PAYBOX-BENCH [A-Z]+( \w+=("([^"\\]|\\.)*"|[\w.:/-]+))+\n$/);
    expect(lines[0]).toBe('PAYBOX-BENCH START scenarios=4 target=emulated seed=7\n');
    expect(lines.at(-1)).toBe('PAYBOX-BENCH END passed=1 failed=1 skipped=1 missing=1 exit=1\n');
    const [, path = ''] = /REPORT kind=tap path=("(?:[^"\\]|\\.)*")/.exec(lines.join('')) ?? [];
    expect(JSON.parse(path)).toMatch(/^a folder\//);
  });

  it('markers for programs are those that the help names, with their fields in that order', async () => {
    const { output } = await payboxToEnd('bench', 'run', '--help');
    const told = documented(output);
    expect(told.map(({ kind }) => kind)).toEqual(['START', 'BEGIN', 'RESULT', 'REPORT', 'END']);
    for (const line of markers()) {
      const [, kind, rest = ''] = /^PAYBOX-BENCH ([A-Z]+) (.*)\n$/.exec(line) ?? [];
      const names = [...rest.replaceAll(/"([^"\\]|\\.)*"/g, 'x').matchAll(/(\w+)=/g)].map(([, name]) => name);
      const fields = told.find((it) => it.kind === kind)?.fields ?? [];
      const expected = fields.filter(
        (field) => !field.startsWith('[') || names.includes(field.replaceAll(/[[\]]/g, '')),
      );
      expect({ kind, names }).toEqual({ kind, names: expected.map((field) => field.replaceAll(/[[\]]/g, '')) });
    }
  });
});
