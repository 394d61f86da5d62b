// biome-ignore-all lint/suspicious/noTemplateCurlyInString: it is how scenarios write variables
import { describe, expect, it } from 'vitest';
import type { Result } from '../../src/bench/reports/result.ts';
import { runSteps } from './setup.ts';

const verdict = ({ outcome, where, reason }: Result) => ({ outcome, where, reason });
const PASSED = { outcome: 'passed', where: undefined, reason: '' };

describe('steps on an emulated box', () => {
  it('send one QR again and again, without an order of its own each time', async () => {
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

  it('say what was expected and what is, with the line', async () => {
    const result = await runSteps('  - expect: { state: idle }\n  - expect: { state: paid, within: 1s }\n');
    expect(verdict(result)).toEqual({
      outcome: 'failed',
      where: 'test.yaml:4',
      reason: 'VVB000001: state: expected "paid", is "idle", 1s long',
    });
    expect(result.entries.map(({ kind }) => kind)).toContain('screen');
    expect(result.entries.filter(({ kind }) => kind === 'problem')).toHaveLength(1);
  });

  it.each([
    ['expect: { screen: payment, within: 1s }', 'VVB000001: screen: expected payment, is idle, 1s long'],
    ['expect: { qr: XYZ, within: 1s }', 'VVB000001: qr: expected "XYZ", none is read on the screen, 1s long'],
    ['expect: { text: 9 ₫, within: 1s }', /^VVB000001: text: expected "9 ₫" on the screen, which says "Sẵn sàng/],
    ['expect: { no text: NGUYEN VAN A, within: 1s }', /^VVB000001: text: expected no "NGUYEN VAN A" on the screen/],
    ['expect: { online: false, within: 1s }', 'VVB000001: online: expected false, is true, 1s long'],
    ['expect: { unreachable: true, within: 1s }', 'VVB000001: expected it to be off, it is idle, 1s long'],
    [
      'fault: { box: "off" }\n  - expect: { unreachable: true, state: paid, within: 1s }',
      /^nothing answers at http:\/\/127\.0\.0\.1:\d+ \(ECONNREFUSED\), 1s long$/,
    ],
    [
      'expect: { status: { order: { amount: 1 } }, within: 1s }',
      'VVB000001: order: expected an object, is null, 1s long',
    ],
    [
      'expect: { report: { order: NONE, status: shown }, within: 1s }',
      'report: the gateway knows no order NONE, 1s long',
    ],
    ['expect: { callback: { payment: NONE }, within: 1s }', 'callback: the gateway has none for payment NONE, 1s long'],
    [
      'expect: { golden: none.png, within: 1s }',
      /^golden: none\.png cannot be read \(ENOENT.*--update-goldens writes it/,
    ],
    [
      'expect: { golden: package.json, within: 1s }',
      /^golden: \S+: the file is not a picture: .*--update-goldens writes it, 1s long$/,
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

  it('go on side by side, each with variables of its own', async () => {
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

  it('fail side by side with the line of the first that fails', async () => {
    const result = await runSteps(
      '  - parallel:\n      - - wait: 1s\n      - - wait: 1s\n        - expect: { state: paid, within: 1s }\n',
    );
    expect(verdict(result)).toMatchObject({ outcome: 'failed', where: 'test.yaml:6' });
  });

  it('repeat, and count', async () => {
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

  // 100 s of the box's time: in real time they would be too long.
  it('notice what does not stay so', { timeout: 60_000 }, async () => {
    const result = await runSteps(
      '  - push: { amount: 1000, content: X }\n  - wait: 200s\n  - expect: { state: showing, for: 200s }\n',
    );
    expect(verdict(result)).toEqual({
      outcome: 'failed',
      where: 'test.yaml:5',
      reason: 'it did not stay true for 200s: VVB000001: state: expected "showing", is "expired"',
    });
  });

  it('are skipped on a target that cannot do them, by name', async () => {
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
