// biome-ignore-all lint/suspicious/noTemplateCurlyInString: it is how scenarios write variables
import { describe, expect, it } from 'vitest';
import { callbacksOf, recordedRun, reportsOf, screensOf, verdict } from './recording.ts';

const PASSED = { outcome: 'passed', reason: '', where: undefined };

/** All that a shop may see in an hour: its pauses are those of people. */
const SHOP = `
name: A shop
boxes: 2
steps:
  - wait: 2s
  # Paid, and the screen comes to rest.
  - push: { amount: 50000, content: DH001, order: DH001 }
  - wait: 3s
  - pay: { amount: 50000, content: DH001 }
  - expect: { screen: idle, within: 20s }
  # The same content and amount again, on the other box.
  - box: 2
    push: { amount: 50000, content: DH001, order: DH001 }
  - wait: 2s
  - pay: { amount: 50000, content: DH001 }
  - wait: 2s
  - box: 2
    press: dismiss
  # Nobody pays.
  - push: { amount: 20000, content: DH002 }
  - wait: 310s
  # The next customer takes the place of the one before, whose order is sent again.
  - push: { amount: 30000, content: DH003, order: DH003 }
    as: before
  - wait: 2s
  - push: { amount: 40000, content: DH004 }
  - wait: 2s
  - push: { amount: 30000, content: DH003, order: DH003, qr: "\${before.qrCode}" }
  - wait: 2s
  - push: { amount: 30000, content: DH003, order: DH003, qr: "\${before.qrCode}" }
  - wait: 2s
  # Money of another amount first, then twice the right one.
  - pay: { amount: 29000, content: DH003 }
  - wait: 12s
  - pay: { amount: 30000, content: DH003 }
  - pay: { amount: 30000, content: DH003 }
  - expect: { screen: idle, within: 30s }
  # Refusals leave what is on the screen.
  - push: { amount: 60000, content: DH005 }
    as: kept
  - wait: 2s
  - push: { amount: 60000, content: DH006, change: { checkSum: "00000000000000000000000000000000" }, answer: E39 }
  - push: { amount: 60000, content: DH007, change: { amount: "1" }, answer: QR_MISMATCH }
  - push: { amount: 60000, content: DH008, change: { terminalCode: VVB000777 }, answer: E35 }
  - push: { amount: 60000, content: Cà phê, answer: E34 }
  - pay: { amount: 0, content: DH005, answer: "002" }
  # Taken back; then one is dismissed by a key.
  - cancel: { order: "\${kept.orderId}" }
  - expect: { screen: idle, within: 20s }
  - push: { amount: 70000, content: DH009 }
  - wait: 2s
  - press: dismiss
  - wait: 2s
  # The partner's server has trouble.
  - fault: { partner: { answer: 503, times: 2 } }
  - generate: { amount: 80000, content: DH010, order: DH010 }
  - wait: 2s
  - pay: { amount: 80000, content: DH010 }
  - expect: { screen: idle, within: 20s }
  # Paid while the box is off.
  - push: { amount: 90000, content: DH011 }
  - wait: 2s
  - fault: { box: "off" }
  - wait: 2s
  - push: { amount: 91000, content: DH012, answer: BOX_OFFLINE }
  - pay: { amount: 90000, content: DH011 }
  - wait: 2s
  - fault: { box: "on" }
  - expect: { screen: paid, within: 30s }
  - expect: { screen: idle, within: 30s }
`;

/** Two tills push to one box at a time while something is wrong. */
const MET = `
name: Two tills
steps:
  - generate: { amount: 10000, content: A1, order: A1 }
    as: a
  - generate: { amount: 20000, content: B1, order: B1 }
    as: b
  - fault: push-swapped
  - parallel:
      - - push: { amount: 10000, content: A1, order: A1, qr: "\${a.qrCode}" }
      - - wait: 400ms
        - push: { amount: 20000, content: B1, order: B1, qr: "\${b.qrCode}", answer: REPLACED }
  - expect: { qr: "\${a.qrCode}" }
  - wait: 5s
  - pay: { amount: 10000, content: A1 }
  - expect: { screen: idle, within: 20s }
`;

const ORDER = `
name: An order
steps:
  - push: { amount: 50000, content: DH001, order: DH001 }
  - wait: 2s
  - pay: { amount: 50000, content: DH001 }
  - expect: { screen: idle, within: 20s }
`;

describe('a recorded session', () => {
  it('replays to the same screens, reports and callbacks', async () => {
    const first = await recordedRun(SHOP);
    expect(verdict(first.result)).toEqual(PASSED);
    const again = await recordedRun(first.file);
    expect(verdict(again.result), first.file).toEqual(PASSED);
    expect(screensOf(again.recording)).toEqual(screensOf(first.recording));
    expect(reportsOf(again.recording)).toEqual(reportsOf(first.recording));
    expect(callbacksOf(again.recording)).toEqual(callbacksOf(first.recording));
    // It was no empty hour.
    const kinds = new Set(screensOf(first.recording).map((it) => it.split(' ')[1]));
    expect(kinds).toEqual(new Set(['idle', 'payment', 'paid', 'expired', 'cancelled']));
    expect(reportsOf(first.recording).filter((it) => it.includes(' paid '))).toHaveLength(9);
    expect(callbacksOf(first.recording)).toHaveLength(9);
    // What is recorded of the replay says the same again.
    const steps = (file: string) =>
      file.split('\n').filter((it) => /^ {2}- (push|pay|cancel|press|fault|generate)/.test(it));
    expect(steps(again.file)).toEqual(steps(first.file));
  }, 240_000);

  it('replays pushes that met while faults stood, as they met', async () => {
    const first = await recordedRun(MET);
    expect(verdict(first.result)).toEqual(PASSED);
    const again = await recordedRun(first.file);
    expect(verdict(again.result), first.file).toEqual(PASSED);
    expect(screensOf(again.recording)).toEqual(screensOf(first.recording));
    expect(reportsOf(again.recording)).toEqual(reportsOf(first.recording));
    expect(callbacksOf(again.recording)).toEqual(callbacksOf(first.recording));
    // The first came late, and took the place of the second before that was on the screen.
    expect(first.file.match(/^ {2}- parallel:$/gm)).toHaveLength(1);
    expect(first.file).toContain('answer: REPLACED');
    expect(callbacksOf(first.recording)).toHaveLength(1);
    const told = ({ file }: typeof first) => file.slice(file.indexOf('steps:')).replaceAll(/wait: \d+m?s/g, 'wait');
    expect(told(again)).toEqual(told(first));
  }, 120_000);

  it('replays what boxes reported, where no screen was watched', async () => {
    const first = await recordedRun(ORDER, { watched: false });
    expect(first.recording.sights).toEqual([]);
    expect(first.file).toContain('expect: { state: showing, qr: "${order1.qrCode}", report: {');
    const again = await recordedRun(first.file);
    expect(verdict(again.result)).toEqual(PASSED);
    expect(reportsOf(again.recording)).toEqual(reportsOf(first.recording));
  });

  it('fails where the replay is another', async () => {
    const { file } = await recordedRun(ORDER);
    const replay = async (from: string | RegExp, to: string) => {
      expect(file).toMatch(from);
      const { result } = await recordedRun(file.replace(from, to));
      return [result.outcome, result.reason];
    };
    expect(await replay('push: { amount: 50000', 'push: { amount: 51000')).toEqual([
      'failed',
      expect.stringMatching(/^VVB000001: text: expected "50\.000 ₫" on the screen/),
    ]);
    expect(await replay(/ {2}- pay: .*\n {4}as: payment1\n/, '  - set: { payment1: none }\n')).toEqual([
      'failed',
      expect.stringMatching(/payment1\.transactionId\} stands for nothing/),
    ]);
    expect(await replay('pay: { amount: 50000', 'pay: { amount: 49000')).toEqual([
      'failed',
      expect.stringMatching(
        /^VVB000001: text: expected "50\.000 ₫"|^report|^callback\.amount: expected 50000, is 49000/,
      ),
    ]);
  });
});
