// biome-ignore-all lint/suspicious/noTemplateCurlyInString: it is how scenarios write variables
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Result } from '../../src/bench/engine/reports/result.ts';
import { failureLines } from '../../src/bench/engine/reports/text.ts';
import { temporaryFolder } from '../support/net.ts';
import { runSteps } from './setup.ts';

const verdict = ({ outcome, where, reason }: Result) => ({ outcome, where, reason });
const PASSED = { outcome: 'passed', where: undefined, reason: '' };

describe('steps on an emulated box', () => {
  it('steps send one QR again and again, without a new order each time', async () => {
    const push = 'push: { amount: 1000, content: A, order: A, qr: "${generate.qrCode}" }';
    const order = 'report: { order: "${generate.transactionId}", status: shown }';
    const result = await runSteps(
      `  - generate: { amount: 1000, content: A, order: A }\n  - ${push}\n  - ${push}\n` +
        `  - expect: { qr: "\${push.qrCode}", text: 1.000 ₫, ${order} }\n`,
    );
    expect(verdict(result)).toEqual(PASSED);
    const made = result.entries.filter(({ title }) => title.startsWith('generate: order'));
    expect(made).toHaveLength(1);
  });

  it('a failed step says what was expected and what is, with the line', async () => {
    const result = await runSteps('  - expect: { state: idle }\n  - expect: { state: paid, within: 1s }\n');
    expect(verdict(result)).toEqual({
      outcome: 'failed',
      where: 'test.yaml:4',
      reason: 'VVB000001: state: expected "paid", is "idle", after 1s',
    });
    expect(result.entries.map(({ kind }) => kind)).toContain('screen');
    expect(result.entries.filter(({ kind }) => kind === 'problem')).toHaveLength(1);
  });

  it.each([
    ['expect: { screen: payment, within: 1s }', 'VVB000001: screen: expected payment, is idle, after 1s'],
    ['expect: { qr: XYZ, within: 1s }', 'VVB000001: qr: expected "XYZ", none is read on the screen, after 1s'],
    ['expect: { text: 9 ₫, within: 1s }', /^VVB000001: text: expected "9 ₫" on the screen, which says "Sẵn sàng/],
    ['expect: { no text: NGUYEN VAN A, within: 1s }', /^VVB000001: text: expected no "NGUYEN VAN A" on the screen/],
    ['expect: { online: false, within: 1s }', 'VVB000001: online: expected false, is true, after 1s'],
    ['expect: { unreachable: true, within: 1s }', 'VVB000001: expected it to be off, it is idle, after 1s'],
    [
      'fault: { box: "off" }\n  - expect: { unreachable: true, state: paid, within: 1s }',
      /^nothing answers at http:\/\/127\.0\.0\.1:\d+ \(ECONNREFUSED\), after 1s$/,
    ],
    [
      'expect: { status: { order: { amount: 1 } }, within: 1s }',
      'VVB000001: order: expected an object, is null, after 1s',
    ],
    [
      'expect: { report: { order: NONE, status: shown }, within: 1s }',
      'report: the gateway knows no order NONE, after 1s',
    ],
    [
      'expect: { callback: { payment: NONE }, within: 1s }',
      'callback: the gateway has none for payment NONE, after 1s',
    ],
    [
      'expect: { golden: none.png, within: 1s }',
      /^golden: none\.png cannot be read \(ENOENT.*--update-goldens writes it/,
    ],
    [
      'expect: { golden: package.json, within: 1s }',
      /^golden: \S+: the file is not a picture: .*--update-goldens writes it, after 1s$/,
    ],
    ['push: { amount: 1, content: X, answer: E39 }', 'push: expected E39, the answer is SUCCESS'],
    ['pay: { amount: 0, content: X }', /^pay: expected SUCCESS, the answer is 002, /],
    ['cancel: { order: NONE }', /^cancel: expected SUCCESS, the answer is E96, /],
    [
      'push: { amount: "${nothing}", content: X }',
      /^\$\{nothing\} is not defined here; known variables: account, box, boxes/,
    ],
    ['push: { amount: "${unique}x", content: X }', /^amount: expected whole đồng, is /],
    ['wait: 1s\n    box: 2', 'none'],
    ['press: history\n    box: 2', 'there is no box 2: the scenario asks for 1, see "boxes"'],
  ])('%s is judged', async (step, reason) => {
    const result = await runSteps(`  - ${step}\n`);
    if (reason === 'none') expect(verdict(result)).toEqual(PASSED);
    else
      expect(result).toMatchObject({
        outcome: 'failed',
        where: `test.yaml:${2 + step.split('\n  - ').length}`,
        reason: expect.stringMatching(pattern(reason)),
      });
  });

  it('a failed step names all that is wrong, and waits come after what they wait for', async () => {
    const wrong = '{ state: paid, screen: idle, text: 9 ₫, callback: { payment: NONE }, within: 1s }';
    const result = await runSteps(`  - expect: { text: 1 ₫, qr: none, within: 1s }\n`);
    const both = await runSteps(`  - expect: { text: Sẵn sàng, qr: none }\n  - expect: ${wrong}\n`);
    expect(result.failure?.notes).toEqual([]);
    expect(both.reason).toBe('callback: the gateway has none for payment NONE, after 1s');
    expect(both.failure?.notes).toEqual([
      'also wrong: VVB000001: state: expected "paid", is "idle"',
      expect.stringMatching(/^also wrong: VVB000001: text: expected "9 ₫" on the screen, which says/),
    ]);
    expect([...both.latencies.keys()]).toContain('until text and qr as expected');
  });

  it('steps in parallel have variables of their own', async () => {
    const result = await runSteps(
      [
        '  - set: { many: 3 }',
        '  - parallel:',
        '      - - set: { many: 1 }',
        '        - wait: 200s',
        '        - push: { amount: "${many}000", content: A }',
        '      - - wait: 100s',
        '        - push: { amount: "${many}000", content: B }',
        '        - expect: { text: 3.000 ₫ }',
        '  - expect: { text: 1.000 ₫, no text: 3.000 ₫ }',
      ].join('\n'),
    );
    expect(verdict(result)).toEqual(PASSED);
    const pushes = result.entries.filter(({ title }) => title.startsWith('send-qr'));
    expect(pushes.map(({ atMs }) => Math.floor(atMs / 100_000))).toEqual([1, 2]);
    expect(result.tookMs).toBeLessThan(100_000);
  });

  it('parallel steps fail with the line of the first that fails', async () => {
    const result = await runSteps(
      '  - parallel:\n      - - wait: 1s\n      - - wait: 1s\n        - expect: { state: paid, within: 1s }\n',
    );
    expect(verdict(result)).toMatchObject({ outcome: 'failed', where: 'test.yaml:6' });
  });

  it('parallel steps keep what they made, under names of their own', async () => {
    const result = await runSteps(
      [
        '  - parallel:',
        '      - - push: { amount: 1000, content: A }',
        '          as: first',
        '      - - generate: { amount: 2000, content: B }',
        '  - push: { amount: 1000, content: A, qr: "${first.qrCode}", order: "${first.orderId}" }',
        '  - push: { amount: 2000, content: B, qr: "${generate.qrCode}", order: "${generate.orderId}" }',
      ].join('\n'),
    );
    expect(verdict(result)).toEqual(PASSED);
  });

  it('steps name their box where there are several, with their lines', async () => {
    const steps = [
      '  - for each box:',
      '      - expect: { state: idle, within: 30s }',
      '      - wait: 1s',
      '  - parallel:',
      '      - - push: { amount: 1000, content: A }',
      '        - pay: { amount: 1000, content: A }',
      '      - - press: history',
      '          box: 2',
    ];
    const result = await runSteps(steps.join('\n'), { head: 'boxes: 2\n' });
    expect(verdict(result)).toEqual(PASSED);
    const told = result.entries.filter(({ kind }) => kind === 'step');
    const of = (terminalCode: string | undefined) =>
      told.filter(({ box }) => box === terminalCode).map(({ title, where }) => `${where} ${title}`);
    expect(of('VVB000001')).toEqual([
      'test.yaml:5 VVB000001  expect: {"within":"30s","state":"idle"}',
      'test.yaml:6 VVB000001  wait: "1s"',
      'test.yaml:8 VVB000001  push: {"amount":1000,"content":"A"}',
    ]);
    expect(of('VVB000002')).toEqual([
      'test.yaml:5 VVB000002  expect: {"within":"30s","state":"idle"}',
      'test.yaml:6 VVB000002  wait: "1s"',
      'test.yaml:10 VVB000002  press: "history"',
    ]);
    expect(of(undefined)).toEqual([
      'test.yaml:4 for each box',
      'test.yaml:7 parallel',
      'test.yaml:9 pay: {"amount":1000,"content":"A"}',
    ]);
  });

  it('steps choose, compute and count, each repeat under its own name', async () => {
    const result = await runSteps(
      [
        '  - repeat:',
        '      times: ${rounds}',
        '      as: i',
        '      steps:',
        '        - repeat:',
        '            times: 2',
        '            steps:',
        '              - if: ${i + n == 3}',
        '                then: [{ set: { sum: "${sum + 10 * i + n}" } }]',
        '                else: [{ set: { other: "${i}" } }]',
        '  - title: ${sum} and ${other}',
        '    wait: 1s',
      ].join('\n'),
      { head: 'variables: { rounds: 2, sum: 0 }\n' },
    );
    expect(verdict(result)).toEqual(PASSED);
    expect(result.entries.findLast(({ kind }) => kind === 'step')?.title).toBe('33 and 2');
  });

  it.each([
    ['if: "${1}"\n    then: [{ wait: 1s }]', 'expected true or false, is 1'],
    ['repeat: { times: "${0 - 1}", steps: [{ wait: 1s }] }', 'repeat: expected from 1 to 10000 times, is -1'],
    ['repeat: { times: "${unique}", steps: [{ wait: 1s }] }', /^repeat: expected .* times, is "[0-9A-F]{4}"$/],
    ['expect: { announced: "${unique}" }', /^expected a whole number from 0 on, is "[0-9A-F]{4}", after 5s$/],
  ])('%s says why it cannot be run', async (step, reason) => {
    const result = await runSteps(`  - ${step}\n`);
    expect(verdict(result)).toMatchObject({ outcome: 'failed', where: 'test.yaml:3' });
    expect(result.reason).toMatch(pattern(reason));
  });

  it('steps end when the time of the scenario is over', async () => {
    const limited = (steps: string) => runSteps(steps, { head: 'limit: 2min\n' });
    expect(verdict(await limited('  - wait: 1min\n'))).toEqual(PASSED);
    const waited = await limited('  - wait: 1min\n  - repeat: { times: 3, steps: [{ wait: 50s }] }\n');
    const reason = 'limit: it takes longer than 2min; this step was begun last';
    expect(verdict(waited)).toEqual({ outcome: 'failed', where: 'test.yaml:5', reason });
    expect(verdict(await limited('  - expect: { state: paid, within: 1h }\n'))).toMatchObject({ reason });
    expect(waited.tookMs).toBeLessThan(60_000);
  });

  it('included steps run as if they were written there, and fail with the line of their file', async () => {
    const folder = await temporaryFolder();
    const inner = 'variables: { amount: 7000, other: 1 }\nsteps:\n  - push: { amount: "${amount}", content: A }\n';
    await writeFile(join(folder, 'inner.yaml'), `${inner}  - expect: { text: "\${other}.000 ₫", within: 1s }\n`);
    const include = (set: string) => runSteps(`  - set: { ${set} }\n  - include: inner.yaml\n`, { folder });
    expect(verdict(await include('amount: 1000'))).toEqual(PASSED);
    const failed = await include('other: 2');
    expect(failed).toMatchObject({ outcome: 'failed', where: 'inner.yaml:4' });
    expect(failed.failure?.lines.map(({ text }) => text)).toEqual([
      '  - push: { amount: "${amount}", content: A }',
      '  - expect: { text: "${other}.000 ₫", within: 1s }',
    ]);
  });

  it('failed steps show their lines and both sides, and say whose order was paid', async () => {
    const steps = [
      '  - push: { amount: 1000, content: A, order: ONE }',
      '  - push: { amount: 2000, content: B, order: TWO }',
      '    box: 2',
      '  - pay: { amount: 2000, content: B }',
      '  - title: the first one is paid',
      '    expect: { state: paid, within: 1s }',
    ];
    const { failure, reason } = await runSteps(steps.join('\n'), { head: 'boxes: 2\n' });
    expect(reason).toBe('VVB000001: state: expected "paid", is "showing", after 1s');
    expect(failure && failureLines(failure)).toEqual([
      '  7 |   - pay: { amount: 2000, content: B }',
      '> 8 |   - title: the first one is paid',
      '> 9 |     expect: { state: paid, within: 1s }',
      '  expected  "paid"',
      '  actual    "showing"',
      expect.stringMatching(
        /^ {2}another box's order was paid: payment \S+ paid order TWO of VVB000002, not of VVB000001$/,
      ),
    ]);
  });

  it('failed steps cut a QR to where it differs, and say whose it is', async () => {
    const steps = [
      '  - push: { amount: 1000, content: A, order: ONE }',
      '  - generate: { amount: 2000, content: A }',
      '  - expect: { qr: "${generate.qrCode}", within: 1s }',
    ];
    const { failure, reason } = await runSteps(steps.join('\n'));
    const { expected = '', actual = '' } = failure ?? {};
    expect(reason).toMatch(
      /^VVB000001: qr: expected "…\S+", the screen has "…\S+", of order ONE for VVB000001; they differ from character \d+ on, after 1s$/,
    );
    expect([expected.slice(0, 13), expected.slice(13, 17)]).toEqual([actual.slice(0, 13), '2000']);
    expect(actual.slice(13, 17)).toBe('1000');
  });

  it('steps repeat and count', async () => {
    const result = await runSteps(
      '  - repeat:\n      times: 3\n      steps:\n        - push: { amount: "${n}000", content: "R${n}", as: x }\n'.replace(
        ', as: x',
        '',
      ),
    );
    expect(result.entries.filter(({ kind }) => kind === 'step').map(({ title }) => title)).toEqual([
      'repeat',
      'push: {"amount":"1000","content":"R1"}',
      'push: {"amount":"2000","content":"R2"}',
      'push: {"amount":"3000","content":"R3"}',
    ]);
  });

  // 400 s of the box's time: in real time they would be too long.
  it('steps notice what does not stay as expected', async () => {
    const result = await runSteps(
      '  - push: { amount: 1000, content: X }\n  - wait: 200s\n  - expect: { state: showing, for: 200s }\n',
    );
    expect(verdict(result)).toEqual({
      outcome: 'failed',
      where: 'test.yaml:5',
      reason: 'it did not stay true for 200s: VVB000001: state: expected "showing", is "expired"',
    });
  });

  it('steps are skipped by name on a target that cannot do them', async () => {
    const result = await runSteps('  - repeat: { times: 2, steps: [{ fault: { box: killed } }] }\n');
    expect(verdict(result)).toEqual({
      outcome: 'skipped',
      where: undefined,
      reason: 'target emulated cannot kill programs; programs of their own can be killed: --target process',
    });
  });
});

function pattern(reason: string | RegExp): RegExp {
  return typeof reason === 'string' ? new RegExp(`^${RegExp.escape(reason)}$`) : reason;
}
