import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { realTime } from '../../src/bench/engine/test-time.ts';
import { Baseline } from '../../src/bench/judges/baseline.ts';
import { Breach, type Check, Mismatch } from '../../src/bench/judges/check.ts';
import { judgeAll, judgeTarget } from '../../src/bench/judges/suite.ts';
import { temporaryFolder } from '../support/net.ts';
import { payboxToEnd } from '../support/processes.ts';

const clauseOf = (title: string, error?: Error): Check<string> => ({
  clause: 'GEN-2',
  title,
  level: 'gap',
  needs: [],
  timeoutMs: 60_000,
  setUp: async () => ({ context: undefined }),
  run: async () => {
    if (error !== undefined) throw error;
  },
});

/** Judges a target whose checks end so, strictly. Returns a line a check, and what is accepted for nothing. */
async function judged(baseline: Baseline, errors: Readonly<Record<string, Error | undefined>>, target = 'T') {
  const checks = Object.entries(errors).map(([title, error]) => clauseOf(title, error));
  const judgedTarget = judgeTarget(() => true, {
    target,
    checks,
    notJudged: [],
    open: async () => ({ subject: '', time: realTime, lacks: () => undefined, close: async () => undefined }),
  });
  const all = await judgeAll([judgedTarget], {
    strict: true,
    accepted: (name, finding) => baseline.accepted(name, finding),
    signal: new AbortController().signal,
    onBegin: () => undefined,
    onStep: () => undefined,
    onEnd: () => undefined,
  });
  const lines = all.flatMap(({ results }) => results.map((it) => `${it.title}: ${it.outcome} ${it.reason}`));
  return { lines, outdated: baseline.outdated(all).map(({ title }) => title) };
}

describe('a baseline', () => {
  it('a baseline accepts what deviated when it was written, as long as it is no worse, and says what is over', async () => {
    const file = join(await temporaryFolder(), 'accepted.json');
    const recording = Baseline.recording(file);
    const choice = new Mismatch('E05, expected E46');
    const taken = new Breach('200, expected E03');
    const { lines } = await judged(recording, { code: choice, worse: choice, over: choice, taken, other: undefined });
    expect(lines.map((it) => it.split(' ')[1])).toEqual(['differs', 'differs', 'differs', 'differs', 'passed']);
    await writeFile(file, recording.text());

    const then = { code: choice, worse: taken, over: undefined, taken: choice, other: choice };
    expect(await judged(await Baseline.read(file), then)).toEqual({
      lines: [
        `code: differs accepted in ${file} as differs: E05, expected E46`,
        'worse: failed 200, expected E03',
        'over: passed ',
        `taken: differs accepted in ${file} as failed: E05, expected E46`,
        'other: failed E05, expected E46',
      ],
      outdated: ['over'],
    });
    const elsewhere = await judged(await Baseline.read(file), { code: choice }, 'another target');
    expect(elsewhere.lines).toEqual(['code: failed E05, expected E46']);
  });

  it.each(['', '[]', '{"accepted":[{"clause":"GEN-2"}]}', '{"accepted":{}}', '{'])('is refused as %j', async (text) => {
    const file = join(await temporaryFolder(), 'accepted.json');
    await writeFile(file, text);
    await expect(Baseline.read(file)).rejects.toMatchObject({ code: 'CONFIG' });
  });

  it('a baseline is written by the command, and read again', async () => {
    const file = join(await temporaryFolder(), 'new/accepted.json');
    const judge = ['judge', 'service', '--only', 'TOK-3', '--strict', '--baseline', file];
    const written = await payboxToEnd(...judge, '--update-baseline');
    expect(written.output).toMatch(/passed=1 failed=0/);
    expect(written.code).toBe(0);
    expect(JSON.parse(await readFile(file, 'utf8'))).toEqual({ accepted: [] });
    const stale = { target: 'our own gateway', clause: 'TOK-3', outcome: 'failed', reason: 'it was' };
    const title = 'the body of a token request is not read, and needs no Content-Type';
    await writeFile(file, JSON.stringify({ accepted: [{ ...stale, title }] }));
    const { code, output } = await payboxToEnd(...judge);
    expect(output).toContain(`accepts what our own gateway does right by now: TOK-3 ${title}`);
    expect(code).toBe(0);
  });
});
