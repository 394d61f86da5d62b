import { spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { junitOf } from '../../src/bench/engine/reports/junit.ts';
import { percentile, percentileTable } from '../../src/bench/engine/reports/percentiles.ts';
import { progressOn } from '../../src/bench/engine/reports/progress.ts';
import { tapOf } from '../../src/bench/engine/reports/tap.ts';
import { tookText } from '../../src/bench/engine/reports/text.ts';
import { temporaryFolder } from '../support/net.ts';
import { PROGRAMS, without } from '../support/programs.ts';
import { HOSTILE, resultsOf } from './results.ts';

const AT = { startedAtMs: Date.UTC(2026, 0, 2, 3, 4, 5) };
const xmllint = without(PROGRAMS.xmllint);

async function lint(xml: string): Promise<{ status: number | null; stderr: string }> {
  const file = join(await temporaryFolder(), 'junit.xml');
  await writeFile(file, xml);
  const schema = join(import.meta.dirname, 'junit.xsd');
  const { status, stderr } = spawnSync('xmllint', ['--noout', '--schema', schema, file], { encoding: 'utf8' });
  return { status, stderr };
}

describe('JUnit XML', () => {
  it.skipIf(xmllint.missing)(`JUnit XML keeps to the schema, whatever the texts say${xmllint.note}`, async () => {
    const valid = await lint(junitOf(resultsOf(), AT));
    expect(valid.stderr).toMatch(/junit\.xml validates$/m);
    expect(valid.status).toBe(0);
    expect((await lint(junitOf([], AT))).status).toBe(0);
  });

  it.skipIf(xmllint.missing)(`the schema refuses other JUnit XML${xmllint.note}`, async () => {
    const xml = junitOf(resultsOf(), AT);
    expect((await lint(xml.replace('<failure', '<fault').replace('</failure', '</fault'))).status).not.toBe(0);
    expect((await lint(xml.replace('tests="4"', 'tests="many"'))).status).not.toBe(0);
  });

  it('JUnit XML counts failures, errors and skips apart', () => {
    const xml = junitOf(resultsOf('bad'), AT);
    expect(xml).toContain('<testsuites name="paybox bench" tests="4" failures="1" errors="1" time="65.037">');
    expect(xml).toContain('timestamp="2026-01-02T03:04:05"');
    expect(xml).toContain('<failure message="bad" type="failed">hostile.yaml:3: bad</failure>');
    expect(xml).toContain('<error message="nothing answers" type="missing">');
    expect(xml).toContain('<skipped message="cannot #1"/>');
    expect(xml).toContain('<testcase name="A plain one" classname="plain" file="plain.yaml" time="0.012"/>');
  });
});

describe('times', () => {
  it.each([
    [0.4, '0 ms'],
    [999.6, '1.0 s'],
    [59_940, '59.9 s'],
    [59_960, '1 min 0 s'],
    [119_600, '2 min 0 s'],
    [303_000, '5 min 3 s'],
  ])('%d ms are told as %s', (ms, text) => {
    expect(tookText(ms)).toBe(text);
  });
});

/** The grammar of TAP 14 as far as the bench writes it: version, plan, points, YAML blocks. Anything else is an error. */
function parseTap(text: string) {
  const [version, plan, ...lines] = text.split('\n');
  expect(version).toBe('TAP version 14');
  expect(lines.pop()).toBe('');
  const points: { ok: boolean; description: string; skip: string | undefined; block: unknown }[] = [];
  for (let line = lines.shift(); line !== undefined; line = lines.shift()) {
    const [, no, number, rest = ''] = /^(not )?ok (\d+) - (.*)$/.exec(line) ?? [];
    expect({ line, number: Number(number) }).toEqual({ line, number: points.length + 1 });
    const [description = '', skip] = rest.split(/(?<!\\) # SKIP /);
    expect(description.replaceAll(/\\[\\#]/g, '')).not.toMatch(/[\\#]/);
    let block: unknown;
    if (lines[0] === '  ---') {
      const end = lines.indexOf('  ...');
      block = parse(
        lines
          .splice(0, end + 1)
          .slice(1, -1)
          .join('\n'),
      );
    }
    points.push({ ok: no === undefined, description, skip, block });
  }
  expect(plan).toBe(`1..${points.length}`);
  return points;
}

describe('TAP', () => {
  it('TAP keeps to the grammar, whatever the texts say', () => {
    const points = parseTap(tapOf(resultsOf()));
    expect(points.map(({ ok, skip }) => [ok, skip])).toEqual([
      [true, undefined],
      [false, undefined],
      [true, 'cannot \\#1'],
      [false, undefined],
    ]);
    expect(points[1]?.block).toMatchObject({ severity: 'fail', at: 'hostile.yaml:3', target: 'emulated', seed: 7 });
    expect(points[3]?.block).toMatchObject({ severity: 'missing', message: 'nothing answers' });
    expect(parseTap(tapOf([]))).toEqual([]);
  });
});

describe('percentiles', () => {
  it('percentiles are of the values that there are', () => {
    const values = Array.from({ length: 100 }, (_, index) => 100 - index);
    expect([0.5, 0.9, 0.99, 1].map((share) => percentile(values, share))).toEqual([50, 90, 99, 100]);
    expect(percentile([], 0.5)).toBeUndefined();
    expect(percentile([7], 0.5)).toBe(7);
  });

  it.each<[string, number[], string[]]>([
    ['<b>', [1, 2, 300], ['&lt;b&gt;', '3', '2.0', '300.0', '300.0', '300.0']],
    ['zero', [0], ['zero', '1', '0.0', '0.0', '0.0', '0.0']],
    ['small and large', [0.04, 90_000], ['small and large', '2', '0.0', '90000.0', '90000.0', '90000.0']],
  ])('are a table, here of %s', (what, values, row) => {
    const table = percentileTable(new Map([[what, values]]));
    const cells = [...table.matchAll(/<t[dh]>(.*?)<\/t[dh]>/g)].map(([, text]) => text);
    expect(cells).toEqual(['milliseconds', 'count', 'p50', 'p90', 'p99', 'max', ...row]);
  });

  it('percentiles print no table without values', () => {
    expect(percentileTable(new Map([['none', []]]))).toBe('');
  });
});

describe('progress', () => {
  const run = (isTTY: boolean) => {
    const told = { out: '', err: '' };
    const stream = (key: 'out' | 'err') => ({
      write: (text: string) => {
        told[key] += text;
      },
      isTTY,
      columns: 40,
    });
    const progress = progressOn({ out: stream('out'), err: stream('err') }, { target: 'emulated', seed: 7 });
    const results = resultsOf();
    for (const [index, result] of results.entries()) {
      progress.begin(result.scenario.name, index + 1, results.length);
      progress.step(`wait: ${HOSTILE}`);
      progress.end(result);
    }
    progress.finish(results, 1);
    return told;
  };

  it('progress has one marker a line for programs, whatever the texts say', () => {
    const lines = run(false).out.trimEnd().split('\n');
    expect(lines.map((line) => line.split(' ', 2).join(' '))).toEqual([
      'PAYBOX-BENCH START',
      ...Array.from({ length: 4 }, () => ['PAYBOX-BENCH BEGIN', 'PAYBOX-BENCH RESULT']).flat(),
      'PAYBOX-BENCH END',
    ]);
    expect(lines[0]).toBe('PAYBOX-BENCH START scenarios=4 target=emulated seed=7');
    expect(lines[2]).toBe('PAYBOX-BENCH RESULT outcome=passed name="A plain one" tookMs=12');
    expect(lines.at(-1)).toBe('PAYBOX-BENCH END passed=1 failed=1 skipped=1 missing=1 exit=1');
  });

  it('progress is plain lines where there is no terminal', () => {
    const { err } = run(false);
    expect(['\r', '\u001b', '\u202e'].filter((control) => err.includes(control))).toEqual([]);
    expect(err).toMatch(/^✓ A plain one \(12 ms\)\n✗ .* \(1 min 5 s\)\n {4}hostile\.yaml:3: /);
    expect(err).toMatch(/\n1 passed, 1 failed, 1 skipped, 1 missing; target emulated, seed 7\n$/);
  });

  it('progress says when nothing was judged, as after an early Ctrl-C', () => {
    let told = '';
    const err = { write: (text: string) => (told += text) };
    progressOn({ out: { write: () => true }, err }, { target: 'process', seed: 7 }).finish([], 130);
    expect(told).toBe('nothing was judged; target process, seed 7\n');
  });

  it('progress is one live line on a terminal, no wider than that, and leaves only verdicts', () => {
    const { err } = run(true);
    const live = err.split('\r\u001b[2K');
    expect(live.length).toBeGreaterThan(8);
    for (const line of live) expect(line.split('\n')[0]?.includes('wait') ? line.length : 0).toBeLessThan(40);
    expect(live.join('')).not.toContain('\u001b');
  });
});
