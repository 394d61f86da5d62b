import { spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { junitOf } from '../../src/bench/engine/reports/junit.ts';
import { progressOn } from '../../src/bench/engine/reports/progress.ts';
import { tapOf } from '../../src/bench/engine/reports/tap.ts';
import { Transcript } from '../../src/bench/engine/reports/transcript.ts';
import { realTime } from '../../src/bench/engine/test-time.ts';
import { BOX_CHECKS, BOX_NOT_JUDGED } from '../../src/bench/judges/box/checks/all.ts';
import {
  Breach,
  type Check,
  type CheckResult,
  type CheckRun,
  groupByClause,
  Mismatch,
  NoAnswer,
  PreconditionFailed,
  runChecks,
} from '../../src/bench/judges/check.ts';
import { DIALECT_BOX_NOT_JUDGED, DIALECT_CHECKS } from '../../src/bench/judges/dialect/checks/all.ts';
import { conformancePage } from '../../src/bench/judges/page.ts';
import { SERVICE_CHECKS, SERVICE_NOT_JUDGED } from '../../src/bench/judges/service/checks/all.ts';
import { Redactor } from '../../src/bench/judges/service/redactor.ts';
import { toReported } from '../../src/bench/judges/suite.ts';
import { MissingPeerError } from '../../src/lib/errors.ts';
import { HOSTILE } from '../bench/results.ts';
import { clausesOf, readProtocol } from '../protocol/document.ts';
import { eachEnds } from '../support/command-lines.ts';
import { temporaryFolder } from '../support/net.ts';
import { PROGRAMS, without } from '../support/programs.ts';

const AT = { startedAtMs: Date.UTC(2026, 0, 2, 3, 4, 5) };
const xmllint = without(PROGRAMS.xmllint);

type TestCheck = Check<string, 'a box', CheckRun<string>>;

function check(work: () => Promise<void>, more: Partial<TestCheck> = {}): TestCheck {
  return {
    clause: 'TOK-1',
    title: 'a title',
    level: 'spec',
    needs: [],
    timeoutMs: 60_000,
    setUp: async (context) => ({ context }),
    run: work,
    ...more,
  };
}

const fails = (error: Error) => async () => {
  throw error;
};

function judge(checks: readonly TestCheck[], { strict = false, signal = new AbortController().signal } = {}) {
  const lacks = () => 'needs a box: give --box-code';
  return runChecks(checks, 'the subject', { lacks, strict, time: realTime, signal });
}

const outcomes = (results: readonly CheckResult[]) => results.map(({ outcome, reason }) => [outcome, reason]);

describe('a run of checks', () => {
  it('a run of checks separates what fails, what differs, what is skipped and who is missing', async () => {
    const results = await judge([
      check(async () => undefined),
      check(fails(new Mismatch('it is 2'))),
      check(fails(new Mismatch('it is 3')), { level: 'gap' }),
      check(fails(new PreconditionFailed('needs a token'))),
      check(async () => undefined, { needs: ['a box'] }),
      check(fails(new Breach('it is taken')), { level: 'gap' }),
      check(fails(new NoAnswer('no answer')), { level: 'gap' }),
      check(fails(new MissingPeerError('nobody', ''))),
      check(fails(new TypeError('a fault of the bench')), { level: 'gap' }),
    ]);
    expect(outcomes(results)).toEqual([
      ['passed', ''],
      ['failed', 'it is 2'],
      ['differs', 'it is 3'],
      ['skipped', 'needs a token'],
      ['skipped', 'needs a box: give --box-code'],
      ['failed', 'it is taken'],
      ['failed', 'no answer'],
      ['missing', 'nobody'],
      ['failed', 'a fault of the bench'],
    ]);
  });

  it('a strict run of checks fails what differs', async () => {
    const results = await judge([check(fails(new Mismatch('it is 3')), { level: 'gap' })], { strict: true });
    expect(outcomes(results)).toEqual([['failed', 'it is 3']]);
  });

  it('a run of checks ends a check that takes too long', async () => {
    const [result] = await judge([check(() => new Promise(() => undefined), { timeoutMs: 20 })]);
    expect(result).toMatchObject({ outcome: 'failed', reason: 'not done within 20 ms' });
  });

  it('a run of checks stops after three checks in a row without an answer', async () => {
    const silent = check(fails(new NoAnswer('no answer')));
    const fine = check(async () => undefined);
    const results = await judge([silent, silent, fine, silent, silent, silent, fine, fine]);
    const tried = ['failed', 'failed', 'passed', 'failed', 'failed', 'failed'];
    expect(results.map(({ outcome }) => outcome)).toEqual([...tried, 'missing', 'missing']);
    expect(results.at(-1)?.reason).toBe('not tried: the 3 checks before had no answer');
  });

  it('a run of checks throws the reason of its signal', async () => {
    const ending = new AbortController();
    const work = async () => {
      ending.abort(new Error('ended by a person'));
      await new Promise(() => undefined);
    };
    await expect(judge([check(work)], { signal: ending.signal })).rejects.toThrow('ended by a person');
  });

  it('a run of checks gives a clause the verdict of the worst of its checks', () => {
    const of = (clause: string, outcome: CheckResult['outcome']) => resultOf({ clause, outcome });
    const clauses = groupByClause([
      of('A', 'passed'),
      of('B', 'passed'),
      of('A', 'differs'),
      of('A', 'skipped'),
      of('C', 'skipped'),
    ]);
    expect(clauses.map(({ clause, outcome }) => [clause, outcome])).toEqual([
      ['A', 'differs'],
      ['B', 'passed'],
      ['C', 'skipped'],
    ]);
  });
});

function resultOf(change: Partial<CheckResult> = {}): CheckResult {
  const evidence = { entries: [], omitted: 0 };
  const base = { clause: 'TOK-1', title: 'a title', level: 'spec', reason: '', tookMs: 1, evidence } as const;
  return { ...base, outcome: 'passed', ...change };
}

function hostileResults(): CheckResult[] {
  const evidence = new Transcript(realTime.clock);
  evidence.add('call', HOSTILE, { detail: { request: { body: HOSTILE }, answer: { [HOSTILE]: HOSTILE } } });
  return [
    resultOf(),
    resultOf({ clause: 'TOK-4', title: HOSTILE, outcome: 'failed', reason: HOSTILE, evidence }),
    resultOf({ clause: 'GEN-6', level: 'gap', outcome: 'differs', reason: HOSTILE }),
    resultOf({ clause: 'SYN-1', outcome: 'skipped', reason: 'needs callbacks' }),
    resultOf({ clause: 'SYN-2', outcome: 'missing', reason: 'nobody' }),
  ];
}

const reported = () => hostileResults().map((it) => toReported(it, { target: 'http://127.0.0.1/vqr', seed: 7 }));

describe('the reports of a judge', () => {
  it.skipIf(xmllint.missing)(`JUnit reports of a judge keep to the schema${xmllint.note}`, async () => {
    const xml = junitOf(reported(), AT);
    const file = join(await temporaryFolder(), 'junit.xml');
    await writeFile(file, xml);
    const schema = join(import.meta.dirname, '../bench/junit.xsd');
    const { stderr } = spawnSync('xmllint', ['--noout', '--schema', schema, file], { encoding: 'utf8' });
    expect(stderr).toMatch(/junit\.xml validates$/m);
  });

  it('JUnit reports of a judge count what differs as skipped, where it can be seen', () => {
    const xml = junitOf(reported(), AT);
    expect(xml).toContain('tests="5" failures="1" errors="1" skipped="2"');
    expect(xml.match(/<skipped message="differs: /g)).toHaveLength(1);
  });

  it('TAP reports of a judge have what differs as to do', () => {
    const points = tapOf(reported())
      .split('\n')
      .filter((line) => /^(not )?ok /.test(line));
    expect(points.map((line) => /^(?:not )?ok \d/.exec(line)?.[0])).toEqual([
      'ok 1',
      'not ok 2',
      'not ok 3',
      'ok 4',
      'not ok 5',
    ]);
    expect(points[2]).toMatch(/^not ok 3 - GEN-6 a title # TODO /);
  });

  it('the last line for programs counts what differs', () => {
    const lines: string[] = [];
    const out = { write: (text: string) => lines.push(text) };
    const progress = progressOn({ out, err: { write: () => true } }, { target: 't', seed: 7, what: 'checks' });
    progress.begin('a clause, and its title', 1, 5);
    progress.finish(reported(), 1);
    expect(lines[0]).toBe('PAYBOX-BENCH START checks=5 target=t seed=7\n');
    expect(lines.at(-1)).toBe('PAYBOX-BENCH END passed=1 failed=1 skipped=1 missing=1 differs=1 exit=1\n');
  });

  it('the page of a judge holds no script and no element that a text brought', () => {
    const page = conformancePage([{ target: HOSTILE, results: hostileResults() }], AT);
    expect(page).not.toMatch(/<script|<img/);
    expect(page).toContain('default-src &#39;none&#39;');
    expect(page).toContain('<td>TOK-4</td><td class="failed">failed</td>');
    expect(page.match(/<section id="c1-2">/g)).toHaveLength(1);
  });
});

describe('what stands in evidence', () => {
  it('evidence has no password, no token and no checkSum, whatever holds it', () => {
    const masks = new Redactor();
    for (const secret of ['pa$$word', 'dXNlcjpwYSQkd29yZA==']) masks.addSecret(secret);
    const masked = JSON.stringify([
      masks.value({ Authorization: 'Basic dXNlcjpwYSQkd29yZA==', 'x-other': 'is pa$$word' }),
      masks.text('{"access_token":"given","checkSum":"d41d8","deep":[{"password":"hidden"}],"content":"pa$$word"}'),
      masks.text('not JSON, pa$$word'),
      masks.text('expected a refusal, the answer is 200 {"token_type":"Bearer","access_token": "given by mis'),
    ]);
    expect(masked).not.toMatch(/pa\$\$|dXNl|given|d41d8|hidden/);
    expect(masked).toContain('Basic •••');
  });

  it('evidence has every reason, although its answers are cut off', () => {
    const reason = (what: string) => `${what}: expected a refusal, the answer is 200 {"access_token":"eyJhbGci`;
    const masked = new Redactor().text(['one', 'two', 'three'].map(reason).join('; '));
    expect(masked.match(/(one|two|three): expected a refusal, the answer is 200 {"access_token":"•••/g)).toHaveLength(
      3,
    );
    expect(masked).not.toContain('eyJ');
  });
});

/** Every clause of PROTOCOL.md. */
const CLAUSES = clausesOf(readProtocol());

describe.each([
  ['service', SERVICE_CHECKS, SERVICE_NOT_JUDGED],
  ['box', BOX_CHECKS, BOX_NOT_JUDGED],
  ['box of the public dialect', DIALECT_CHECKS, DIALECT_BOX_NOT_JUDGED],
] as const)('each clause of PROTOCOL.md at a %s', (_name, checks, unjudged) => {
  const roomOf = (clause: string) => clause.replace(/-\d+$/, '');
  const named = unjudged.flatMap(({ clauses }) => clauses);

  it('each clause is judged, or named as not judged with the reason, and never both', () => {
    expect(CLAUSES.length).toBeGreaterThan(120);
    const judged = new Set<string>(checks.map(({ clause }) => clause));
    const isNamed = (clause: string) => named.includes(clause) || named.includes(roomOf(clause));
    expect(CLAUSES.filter((it) => !judged.has(it) && !isNamed(it))).toEqual([]);
    expect(CLAUSES.filter((it) => judged.has(it) && isNamed(it))).toEqual([]);
    expect([...judged].filter((it) => !CLAUSES.includes(it))).toEqual([]);
  });

  it('each clause in the lists of a judge stands there once, and exists', () => {
    const rooms = new Set(CLAUSES.map(roomOf));
    expect(named.filter((it) => !rooms.has(it) && !CLAUSES.includes(it))).toEqual([]);
    expect(new Set(named).size).toBe(named.length);
    expect(unjudged.filter(({ why }) => why.length < 10)).toEqual([]);
  });

  it('a clause that is not judged stands in the page with its reason', () => {
    const page = conformancePage([{ target: 'it', results: [], notJudged: unjudged }], AT);
    for (const { clauses, why } of unjudged) {
      expect(page).toContain(`<td>${clauses.join(', ')}</td><td>${why.replaceAll("'", '&#39;')}</td>`);
    }
  });
});

describe('the checks of a service', () => {
  it('the checks of a service have distinct names, and a clause of PROTOCOL.md each', () => {
    const names = SERVICE_CHECKS.map(({ clause, title }) => `${clause} ${title}`);
    expect(new Set(names).size).toBe(names.length);
    expect(SERVICE_CHECKS.filter(({ clause }) => !CLAUSES.includes(clause))).toEqual([]);
  });
});

describe('paybox judge', () => {
  const [SERVICE, BOX, DIALECT] = ['service', 'box', 'dialect'].map((name) => ['judge', name]) as [
    string[],
    string[],
    string[],
  ];
  const NOBODY = [...SERVICE, '--service', 'http://127.0.0.1:9/vqr', '--username', 'u'];
  const AWAITED = [...BOX, '--await-box', 'VVB000001:VVB900001'];
  const MAC = [...DIALECT, '--await-box', '02:00:5E:10:00:01'];
  const CODES = '--await-box VVB000001: expected terminalCode:serialNumber, as VVB000001:VVB900001';
  eachEnds([
    [2, 'a service that is no address', [...SERVICE, '--service', 'shop'], '--service shop: expected an address'],
    [2, 'an empty password', [...NOBODY, '--password-file', '/dev/null'], '--password-file /dev/null'],
    [2, 'clauses that there are not', [...SERVICE, '--only', 'XYZ'], '--only XYZ: expected clauses'],
    [2, 'clauses of a service at a box', [...BOX, '--only', 'TOK'], 'run paybox judge service for these'],
    [2, 'clauses of a box at a service', [...SERVICE, '--only', 'AGT-2,SIG'], 'run paybox judge box for these'],
    [2, 'clauses of the dialect at a box', [...BOX, '--only', 'DIA'], 'run paybox judge dialect for these'],
    [2, 'a user without a service', [...SERVICE, '--username', 'u'], '--username belongs to --service'],
    [2, 'a box at our own gateway', [...SERVICE, '--serial', 'VVB900001'], '--serial belongs to --service'],
    [2, 'an address without a box', [...BOX, '--listen', '0.0.0.0'], '--listen belongs to --await-box'],
    [2, 'a scenario', [...SERVICE, 'happy-path'], '--service happy-path: expected an address'],
    [2, 'two services', [...NOBODY, 'http://127.0.0.1:8/vqr'], 'expected one target, and --service is there too'],
    [2, 'a box by one code', [...BOX, 'VVB000001'], CODES],
    [2, 'a box of the dialect by a code', [...DIALECT, 'VVB000001'], '--await-box VVB000001: expected the MAC'],
    [2, 'a box without its serial number', [...BOX, '--await-box', 'VVB000001'], CODES],
    [2, 'a box without its secret', AWAITED, '--box-secret-file is needed with --await-box'],
    [2, 'a baseline that is nowhere', [...BOX, '--baseline', '/none.json'], 'write it anew with --update-baseline'],
    [2, 'a baseline to write without its name', [...BOX, '--update-baseline'], 'expected --baseline FILE beside it'],
    [2, 'a box of the dialect by its code', [...DIALECT, '--await-box', 'VVB000001:VVB900001'], 'the MAC address of'],
    [2, 'a box of the dialect without its salt', MAC, '--check-sum-salt-file is needed with --await-box'],
    [2, 'a user without a password', [...MAC, '--check-sum-salt-file', 'x', '--username', 'u'], 'expected both'],
    [2, 'a salt outside the dialect', [...AWAITED, '--check-sum-salt-file', 'x'], "unknown option '--check-sum-salt"],
    [2, 'a box and a service', [...AWAITED, '--service', 'http://x'], "unknown option '--service'"],
    [2, 'the command that was', ['bench', 'conformance'], "unknown command 'conformance'"],
  ]);
});
