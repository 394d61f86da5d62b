import { describe, expect, it } from 'vitest';
import { annotationsOf, summaryOf } from '../../src/bench/engine/reports/github.ts';
import { jsonOf } from '../../src/bench/engine/reports/json.ts';
import { junitOf } from '../../src/bench/engine/reports/junit.ts';
import { progressOn } from '../../src/bench/engine/reports/progress.ts';
import type { Judged, Outcome, Result } from '../../src/bench/engine/reports/result.ts';
import { tapOf } from '../../src/bench/engine/reports/tap.ts';
import { chosen, type Entry } from '../../src/bench/engine/run/choice.ts';
import { runSuite, type SuiteOptions } from '../../src/bench/engine/run/suite.ts';
import { parseScenario } from '../../src/bench/scenarios/scenario.ts';
import { HOSTILE, resultsOf } from './results.ts';

const [PLAIN] = resultsOf();
const AT = { startedAtMs: Date.UTC(2026, 0, 2, 3, 4, 5), target: 'emulated', seed: 7 };
const scenarios = (...names: string[]) =>
  names.map((name) => parseScenario(`{ name: ${name}, steps: [{ wait: 1s }] }`, `${name}.yaml`, '/work'));
const named = (entries: readonly Entry[]) => entries.map(({ scenario, seed }) => `${scenario.name}:${seed}`);

describe('the choice of scenarios', () => {
  it.each([
    [/^b/i, ['b', 'B2']],
    [/b\.yaml/, ['b']],
    [/moon/, []],
  ])('%s picks by file or name', (grep, names) => {
    const picked = chosen(scenarios('a', 'b', 'B2'), { grep, repeat: 1, seed: 1 });
    expect(picked.map(({ scenario }) => scenario.name)).toEqual(names);
  });

  it('repeated scenarios use the next seed each time', () => {
    const entries = chosen(scenarios('a', 'b'), { repeat: 2, seed: 5 });
    expect(named(entries)).toEqual(['a (1/2):5', 'a (2/2):6', 'b (1/2):5', 'b (2/2):6']);
  });

  it('shards of scenarios are disjoint, complete and in order, however the files are listed', () => {
    const all = scenarios('a', 'b', 'c', 'd', 'e', 'f', 'g');
    const shards = (of: number, list = all) =>
      Array.from({ length: of }, (_, index) =>
        named(chosen(list, { repeat: 2, seed: 1, shard: { number: index + 1, of } })),
      );
    for (const of of [1, 3, 5, 20]) {
      expect(shards(of).flat().sort()).toEqual(named(chosen(all, { repeat: 2, seed: 1 })).sort());
      const other = shards(of, all.toReversed());
      expect(other.map((it) => it.toSorted())).toEqual(shards(of).map((it) => it.toSorted()));
    }
    expect(shards(3).map((it) => it.length)).toEqual([5, 5, 4]);
    expect(shards(20).at(-1)).toEqual([]);
  });
});

/** Runs a suite of scenarios, each with its outcomes one after the other; a number is how long it takes, in turns. */
async function suite(outcomes: Record<string, readonly (Outcome | 'hangs')[]>, options: Partial<SuiteOptions> = {}) {
  const log: string[] = [];
  let atOnce = 0;
  let most = 0;
  const results = await runSuite(
    chosen(scenarios(...Object.keys(outcomes)), { repeat: 1, seed: 7 }),
    async ({ scenario }, { retry, signal }): Promise<Result> => {
      atOnce += 1;
      most = Math.max(most, atOnce);
      // The first of a suite ends last.
      for (let turn = scenario.name === 'a' ? 20 : 2; turn > 0; turn -= 1) await Promise.resolve();
      const outcome = outcomes[scenario.name]?.[retry] ?? 'passed';
      if (outcome === 'hangs') {
        await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
      }
      atOnce -= 1;
      if (outcome === 'hangs') throw signal.reason;
      const told = outcome === 'passed' ? {} : { reason: `no ${retry + 1}`, where: `${scenario.file}:3` };
      return { ...PLAIN, reason: '', where: undefined, entries: [], seed: 7, ...told, scenario, outcome } as Result;
    },
    {
      ...{ target: 'emulated', jobs: 1, retries: 0, failFast: false, signal: new AbortController().signal },
      onBegin: ({ scenario }, number) => log.push(`begin ${number} ${scenario.name}`),
      onEnd: ({ scenario, outcome }) => log.push(`end ${scenario.name} ${outcome}`),
      ...options,
    },
  );
  return { results, log, most, outcomes: results.map(({ outcome }) => outcome) };
}

describe('a suite', () => {
  it('a suite runs as many scenarios in parallel as it has jobs, and reports them in order', async () => {
    const all = { a: [], b: [], c: [], d: [] };
    const log = ['a', 'b', 'c', 'd'].flatMap((name, index) => [`begin ${index + 1} ${name}`, `end ${name} passed`]);
    for (const [jobs, most] of [
      [1, 1],
      [3, 3],
      [9, 4],
    ] as const) {
      expect(await suite(all, { jobs })).toMatchObject({ log, most });
    }
  });

  it.each<[outcomes: Outcome[], retries: number, verdict: Judged['outcome'], earlier: number, reason: string]>([
    [['failed', 'passed'], 1, 'flaky', 1, 'passed only in run 2; run 1: no 1'],
    [['missing', 'failed', 'passed'], 5, 'flaky', 2, 'passed only in run 3; run 2: no 2'],
    [['failed', 'failed', 'passed'], 1, 'failed', 1, 'no 2'],
    [['failed', 'passed'], 0, 'failed', 0, 'no 1'],
    [['skipped', 'passed'], 3, 'skipped', 0, 'no 1'],
    [['passed', 'failed'], 3, 'passed', 0, ''],
  ])('whose scenario %j has %d retries says %s', async (outcomes, retries, verdict, earlier, reason) => {
    const { results } = await suite({ a: outcomes }, { retries });
    expect(results[0]).toMatchObject({ outcome: verdict, reason });
    expect(results[0]?.earlier).toHaveLength(earlier);
  });

  it('a suite ends at the first failure where that is chosen, with what runs beside it', async () => {
    const all = { a: [], b: ['failed', 'failed'], c: ['hangs'], d: [] } as const;
    const { results, outcomes } = await suite(all, { failFast: true, jobs: 2, retries: 1 });
    expect(outcomes).toEqual(['passed', 'failed', 'skipped', 'skipped']);
    expect(results.at(-1)?.reason).toBe('not judged: --fail-fast, and "b" failed');
    expect((await suite({ a: ['failed'], b: [] })).outcomes).toEqual(['failed', 'passed']);
    expect((await suite({ a: ['failed'], b: [] }, { failFast: true, retries: 1 })).outcomes).toEqual([
      'flaky',
      'passed',
    ]);
  });

  it('a suite gives scenarios that a signal ended a result too', async () => {
    const ending = new AbortController();
    const running = suite({ a: [], b: ['hangs'], c: [] }, { signal: ending.signal, onBegin: () => undefined });
    for (let turn = 0; turn < 200; turn += 1) await Promise.resolve();
    const beganMs = performance.now();
    await expect.poll(() => performance.now() - beganMs).toBeGreaterThan(20);
    ending.abort(new Error('ended by SIGINT'));
    const { outcomes, results } = await running;
    expect(outcomes).toEqual(['passed', 'missing', 'missing']);
    expect(results[2]?.reason).toBe('ended by SIGINT, before its verdict');
    const [, begun = 0, never = 0] = results.map(({ tookMs }) => tookMs);
    expect(begun).toBeGreaterThan(20);
    expect(never).toBeLessThan(begun);
    const junit = junitOf(results, { startedAtMs: 0 });
    expect(junit).toContain('type="missing">ended by SIGINT, before its verdict</error>');
  });

  it('a suite fails when the bench itself does', async () => {
    const broken = runSuite(
      chosen(scenarios('a', 'b'), { repeat: 1, seed: 1 }),
      () => Promise.reject(new Error('bug')),
      {
        ...{ target: 'emulated', jobs: 2, retries: 1, failFast: false, signal: new AbortController().signal },
        onBegin: () => undefined,
        onEnd: () => undefined,
      },
    );
    await expect(broken).rejects.toThrow('bug');
  });
});

describe('a flaky scenario', () => {
  const flaky = async () => (await suite({ a: [], b: ['failed'] }, { retries: 2 })).results;

  it('a flaky scenario is named in every report', async () => {
    const results = await flaky();
    const junit = junitOf(results, AT);
    expect(junit).toContain('tests="2" failures="0" errors="0"');
    expect(junit).toContain('<property name="flakyFailure" value="passed only in run 2; run 1: no 1"/>');
    expect(tapOf(results)).toMatch(/^ok 2 - b\n {2}---\n {2}message: .*run 1: no 1"\n {2}severity: "flaky"$/m);
    expect(JSON.parse(jsonOf(results, AT))).toMatchObject({
      flaky: 1,
      passed: 1,
      scenarios: [{ outcome: 'passed' }, { outcome: 'flaky', where: 'b.yaml:3', earlier: [{ outcome: 'failed' }] }],
    });
    const told = { out: '', err: '' };
    const stream = (key: 'out' | 'err') => ({ write: (text: string) => (told[key] += text) });
    const progress = progressOn({ out: stream('out'), err: stream('err') }, AT);
    for (const result of results) progress.end(result);
    progress.finish(results, 0);
    expect(told.out).toMatch(/^PAYBOX-BENCH RESULT outcome=flaky name=b tookMs=\d+ runs=2 reason=.* where=b\.yaml:3$/m);
    expect(told.out).toMatch(/^PAYBOX-BENCH END passed=1 failed=0 skipped=0 missing=0 flaky=1 exit=0$/m);
    expect(told.err).toMatch(/^≈ flaky: b .*\n {4}b\.yaml:3: passed only in run 2/m);
    expect(told.err).toMatch(/^1 passed, 1 flaky; target emulated, seed 7$/m);
  });
});

describe('GitHub', () => {
  it('GitHub shows failures at their lines, and no markup that a text brings', async () => {
    const { results } = await suite({ a: ['failed'], b: ['failed', 'passed'] });
    const hostile = resultsOf(`${HOSTILE}\n::error::x%`).map((it) => ({ ...it, earlier: [] }));
    expect(annotationsOf(results, '/work')).toBe(
      '::error file=a.yaml,line=3,title=a%3A failed::no 1\n::error file=b.yaml,line=3,title=b%3A failed::no 1\n',
    );
    expect(annotationsOf(results, '/elsewhere')).toContain('::error title=a%3A failed::no 1\n');
    const lines = annotationsOf(hostile, '/work').trimEnd().split('\n');
    expect(lines).toHaveLength(2);
    for (const line of lines) expect(line).toMatch(/^::error [^:]*::(?!.*%[^2])/);
    const [first] = results;
    const comma = first && { ...first, scenario: { ...first.scenario, name: 'a,line=9' } };
    expect(annotationsOf(comma ? [comma] : [], '/elsewhere')).toBe('::error title=a%2Cline=9%3A failed::no 1\n');
    const many = Array.from({ length: 30 }, () => results).flat();
    expect(annotationsOf(many, '/work').trimEnd().split('\n')).toHaveLength(10);
  });

  it('GitHub gets a summary with what failed first, as text', async () => {
    const hostile = resultsOf('<b>|[x](y) `code`').map((it) => ({ ...it, earlier: [] }));
    const summary = summaryOf(hostile, AT);
    expect(summary).toMatch(/^### paybox bench: 1 passed, 1 failed, 1 skipped, 1 missing$/m);
    const rows = summary.split('\n').filter((line) => line.startsWith('| ') && !line.includes('verdict'));
    expect(rows.map((row) => row.split('|')[1]?.trim())).toEqual([
      '❌ failed',
      '❗ missing',
      '✅ passed',
      '➖ skipped',
    ]);
    for (const row of rows) expect(row.split('|')).toHaveLength(6);
    expect(summary).not.toMatch(/<b>|\[x\]|`code`/);
  });
});
