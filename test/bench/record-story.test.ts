// biome-ignore-all lint/suspicious/noTemplateCurlyInString: it is how scenarios write variables
import { describe, expect, it } from 'vitest';
import { durationText } from '../../src/bench/record/durations.ts';
import { fileOf } from '../../src/bench/record/file.ts';
import type { Recording } from '../../src/bench/record/recording.ts';
import type { Heard } from '../../src/bench/record/wire-at.ts';
import { parseScenario } from '../../src/bench/scenario.ts';
import { encodeVietQr } from '../../src/protocol/vietqr.ts';

const ACCOUNT = { bankAccount: '0123456789', bankCode: 'MB', userBankName: 'NGUYEN VAN A' };
const BOX = 'VVB000001';
const ORDER = { ...ACCOUNT, amount: 5_000, content: 'A', orderId: 'O1', transType: 'C', qrType: 0 };
const QR = encodeVietQr({
  bin: '970422',
  account: ACCOUNT.bankAccount,
  service: 'account',
  initiation: 'dynamic',
  amount: 5_000,
  purpose: 'A',
});
const SEND = {
  bankAccount: ACCOUNT.bankAccount,
  bankCode: 'MB',
  amount: '5000',
  content: 'A',
  qrCode: QR,
  terminalCode: BOX,
  serialNumber: 'VVB900001',
  orderId: 'O1',
  checkSum: '***',
};
const SUCCESS = { status: 'SUCCESS', message: '' };
const failed = (message: string) => ({ status: 'FAILED', message });
const UUID = '00000000-0000-4000-8000-000000000001';

type Said = Record<string, unknown> & { kind: Heard['kind'] };
const call = (path: string, body: unknown, answer: unknown, status = 200): Said => ({
  kind: 'call',
  by: 'demo',
  method: 'POST',
  path,
  body,
  status,
  answer,
  tookMs: 10,
});
const generated = (order = ORDER, id = UUID) =>
  call('/api/qr/generate-customer', order, { qrCode: QR, transactionId: id, orderId: order.orderId, userBankName: '' });
const sent = (body: unknown = SEND, answer: object = SUCCESS) => call('/api/tid/send-qr', body, answer);
const owner = (path: string, answer: unknown = SUCCESS, body: unknown = null, more: object = {}): Said => ({
  ...call(`/_mock${path}`, body, answer),
  by: null,
  ...more,
});
const message = (to: 'box' | 'gateway', body: Record<string, unknown>): Said => ({
  kind: 'message',
  box: BOX,
  to,
  body,
});
const HELLO = message('gateway', { type: 'hello' });

/** The steps and comments that a session becomes, one entry a second unless it says when. */
function told(entries: (Said & { atMs?: number })[], more: Partial<Recording> = {}): string[] {
  const heard = entries.map((it, index) => ({ n: index + 1, at: '', upMs: 0, atMs: index * 100, ...it }));
  const recording: Recording = {
    origin: 'http://127.0.0.1:8800',
    writtenAtMs: 0,
    heard: heard as unknown as Heard[],
    sights: [],
    lost: 0,
    restartsMs: [],
    account: ACCOUNT,
    serials: new Map([[BOX, 'VVB900001']]),
    ...more,
  };
  const file = fileOf(recording);
  if (file === undefined) return [];
  // Whatever is written can be read.
  parseScenario(file, 'recorded.yaml');
  return file
    .slice(file.indexOf('steps:'))
    .split('\n')
    .slice(1)
    .map((it) => it.trim())
    .filter((it) => it !== '');
}

const PUSHED = ['- push: { amount: 5000, content: A, order: O1 }', 'as: order1'];

describe('a session', () => {
  it('in which nothing was done is no scenario', () => {
    expect(told([HELLO])).toEqual([]);
    expect(told([HELLO, call('/api/tid/send-qr', 'no JSON', failed('E46'))])).toEqual([]);
  });

  it('has one step for an order that is generated and pushed, and two where something came between', () => {
    expect(told([HELLO, generated(), sent()])).toEqual(PUSHED);
    const paid = call('/bank/api/test/transaction-callback', ORDER, { status: 'SUCCESS', message: UUID });
    expect(told([HELLO, generated(), paid, sent()])).toEqual([
      '- generate: { amount: 5000, content: A, order: O1 }',
      'as: order1',
      '- pay: { amount: 5000, content: A }',
      'as: payment1',
      '- push: { amount: 5000, content: A, order: O1, qr: "${order1.qrCode}" }',
    ]);
  });

  it('keeps calls in the order of their answers where they began at one moment, as a clock that stands still has it', () => {
    const [atMs, tookMs] = [57.716395, 8.5968];
    expect(atMs + tookMs - tookMs).toBeLessThan(atMs);
    const made = { ...generated(), atMs, tookMs: 0 };
    expect(told([HELLO, made, { ...sent(), atMs: atMs + tookMs, tookMs }])).toEqual(PUSHED);
  });

  it('pushes an order anew when it was pushed twice, and a QR that a partner made', () => {
    expect(told([HELLO, generated(), sent(), sent()])).toEqual([
      ...PUSHED,
      '- push: { amount: 5000, content: A, order: O1, qr: "${order1.qrCode}" }',
    ]);
    expect(told([HELLO, sent()])).toEqual(PUSHED);
    const other = encodeVietQr({
      bin: '970422',
      account: ACCOUNT.bankAccount,
      service: 'account',
      initiation: 'static',
      amount: 5_000,
      purpose: 'A',
    });
    expect(told([HELLO, sent({ ...SEND, qrCode: other })])[0]).toBe(
      `- push: { amount: 5000, content: A, order: O1, qr: ${other} }`,
    );
  });

  it.each([
    ['a wrong checkSum', {}, 'E39', '{ checkSum: "00000000000000000000000000000000" }'],
    ['no checkSum', { checkSum: undefined }, 'E46', '{ checkSum: null }'],
    ['another amount', { amount: '1' }, 'QR_MISMATCH', '{ amount: "1" }'],
    ['an amount as a number', { amount: 5_000 }, 'E46', '{ amount: 5000 }'],
    [
      'an unknown box',
      { terminalCode: 'VVB000777', serialNumber: '' },
      'E35',
      '{ terminalCode: VVB999999, serialNumber: "" }',
    ],
    ['another account', { bankAccount: '999' }, 'E36', '{ bankAccount: "999" }'],
    ['no order', { orderId: '' }, 'E39', '{ orderId: "", checkSum: "00000000000000000000000000000000" }'],
  ])('sends %s again', (_what, change, code, words) => {
    const body = Object.fromEntries(Object.entries({ ...SEND, ...change }).filter(([, value]) => value !== undefined));
    expect(told([HELLO, generated(), sent(body, failed(code))])[0]).toBe(
      `- push: { amount: 5000, content: A, order: O1, change: ${words}, answer: ${code} }`,
    );
  });

  it('names a box by either of its codes, and its bank by either of its names', () => {
    expect(told([HELLO, generated(), sent({ ...SEND, serialNumber: '' })])).toEqual(PUSHED);
    expect(told([HELLO, generated(), sent({ ...SEND, terminalCode: '', bankCode: '970422' })])).toEqual(PUSHED);
  });

  it.each([
    [
      'a body that is no JSON',
      call('/api/tid/send-qr', '{"amount":', failed('E46')),
      /a send-qr that no step can make/,
    ],
    [
      'a static QR',
      call('/api/qr/generate-customer', { ...ORDER, qrType: 1 }, {}),
      /a generate that no step can make: its fields/,
    ],
    [
      'another account',
      generated({ ...ORDER, bankAccount: '555' }),
      /a generate that no step can make: of another account than 0123456789/,
    ],
    ['what looks like a variable', generated({ ...ORDER, content: '${seed}' }), /a generate that no step can make/],
    ['a box that was silent', sent(SEND, failed('BOX_TIMEOUT')), /BOX_TIMEOUT.*did not confirm it in time/],
    ['a broken display', sent(SEND, failed('DISPLAY_FAULT')), /DISPLAY_FAULT.*Add the fault of its display if it is/],
    ['a full disk', sent(SEND, failed('STORAGE_FAULT')), /STORAGE_FAULT.*Add the fault of its disk if it is/],
    ['an overtaken push', sent(SEND, failed('REPLACED')), /another push overtook it/],
    [
      'a box that was not there',
      sent(SEND, failed('BOX_OFFLINE')),
      /a send-qr was refused, because VVB000001 was not connected/,
    ],
    [
      'an expired token',
      call('/api/tid/send-qr', null, failed('E74'), 401),
      /a send-qr was refused, which no step can bring about: E74/,
    ],
    ['a refused token', call('/api/token_generate', null, failed('E74'), 401), /a token was refused: E74/],
    ['a callback sent by hand', owner('/callbacks/x/resend'), /a callback was sent again by hand/],
    ['another key', owner('/keys/rotate'), /another key to sign with/],
    [
      'an order from before',
      owner('/orders/OLD/cancel'),
      /an order from before this recording, OLD: cancel at the console/,
    ],
    [
      'a line break in a name',
      owner('/orders/A%0A- wait: 1h/cancel'),
      /^# an order from before this recording, A - wait: 1h/,
    ],
  ])('has a comment for %s', (_what, entry, words) => {
    const lines = told([HELLO, generated(), sent(), entry]);
    expect(lines.slice(0, 2)).toEqual(PUSHED);
    expect(lines).toHaveLength(3);
    expect(lines[2]).toMatch(/^# /);
    expect(lines[2]).toMatch(
      words instanceof RegExp && words.source.startsWith('^') ? words : new RegExp(`^# .*${words.source}`),
    );
  });

  it("cancels and pays at the console, by the gateway's own id where two orders have one", () => {
    const second = 'aaaaaaaa-0000-4000-8000-000000000002';
    const lines = told([
      HELLO,
      generated(),
      generated({ ...ORDER, content: 'B' }, second),
      owner(`/orders/${UUID}/cancel`),
      owner(`/orders/${second}/pay`, { status: 'SUCCESS', message: UUID }),
      owner('/orders/NONE/cancel', failed('E96'), null, { status: 404 }),
    ]);
    expect(lines.slice(4)).toEqual([
      '- cancel: { order: "${order1.transactionId}" }',
      '# paid at the console',
      '- pay: { amount: 5000, content: B }',
      'as: payment1',
      '- cancel: { order: NONE, answer: E96 }',
    ]);
  });

  it('orders faults again, and lets a box be silent that was made so', () => {
    const order = { fault: 'push-lost', box: BOX, times: 2, seconds: 90 };
    const lines = told([
      HELLO,
      owner('/faults', { ...order, id: 'f1', happened: 0 }, order, { status: 201 }),
      generated(),
      sent(SEND, failed('BOX_TIMEOUT')),
      owner('/faults/f1', '', null, { method: 'DELETE', status: 204 }),
      owner('/faults', '', null, { method: 'DELETE', status: 204 }),
    ]);
    expect(lines).toEqual([
      '- fault: { inject: push-lost, times: 2, for: 90s }',
      '- push: { amount: 5000, content: A, order: O1, answer: BOX_TIMEOUT }',
      'as: order1',
      '- fault: { end: push-lost }',
      '- fault: { end: all }',
    ]);
  });

  describe('of two pushes at one time', () => {
    const other = { ...ORDER, content: 'B', orderId: 'O2' };
    const otherQr = encodeVietQr({
      bin: '970422',
      account: ACCOUNT.bankAccount,
      service: 'account',
      initiation: 'dynamic',
      amount: 5_000,
      purpose: 'B',
    });
    const made = [
      generated(),
      call('/api/qr/generate-customer', other, {
        qrCode: otherQr,
        transactionId: 'B',
        orderId: 'O2',
        userBankName: '',
      }),
    ];
    const sentAt = (atMs: number, tookMs: number, of: object, answer: object = SUCCESS) => ({
      ...sent({ ...SEND, ...of }, answer),
      atMs,
      tookMs,
    });
    const second = { content: 'B', orderId: 'O2', qrCode: otherQr };
    const order = { fault: 'push-swapped', box: BOX };
    const fault = owner('/faults', { ...order, id: 'f1', happened: 0 }, order, { status: 201 });
    const one = '- push: { amount: 5000, content: A, order: O1, qr: "${order1.qrCode}" }';
    const two = '- push: { amount: 5000, content: B, order: O2, answer: REPLACED, qr: "${order2.qrCode}" }';
    // The first is answered after the second, which overtakes it; a box is told of both.
    const both = [sentAt(2_000, 1_000, second, failed('REPLACED')), sentAt(2_010, 1_500, {})];

    it('makes them at one time again where faults stand', () => {
      const lines = told([HELLO, ...made, fault, ...both]).slice(4);
      const ended = '- fault: { end: all }';
      expect(lines).toEqual(['- fault: push-swapped', '- parallel:', `- ${one}`, '- - wait: 490ms', two, ended]);
    });

    it.each([
      ['without a fault', [...made, sentAt(2_000, 1_000, second), sentAt(2_010, 1_800, {})]],
      [
        'where one began when the other was answered',
        [...made, fault, sentAt(1_000, 500, {}), sentAt(1_500, 500, second)],
      ],
      [
        'to two boxes',
        [...made, fault, sentAt(2_000, 1_000, { ...second, terminalCode: 'VVB000002' }), both[1] as Said],
      ],
      [
        'where something else was done meanwhile',
        [...made, fault, { ...owner('/faults', ''), method: 'DELETE', status: 204, atMs: 1_500 }, ...both],
      ],
    ])('makes them one after the other %s', (_what, entries) => {
      const away = { ...message('gateway', { type: 'hello' }), box: 'VVB000002' };
      const lines = told([HELLO, away, ...entries]);
      expect(lines.filter((it) => it.includes('push: '))).toHaveLength(2);
      expect(lines).not.toContain('- parallel:');
    });
  });

  it('waits as long as people did, and says what it does not know', () => {
    const lines = told([HELLO, generated(), sent(), { ...generated({ ...ORDER, orderId: 'O2' }), atMs: 95_700 }]);
    expect(lines.slice(2)).toEqual([
      '- wait: 95s',
      '# 1 min 36 s on',
      '- generate: { amount: 5000, content: A, order: O2 }',
      'as: order2',
    ]);
    const gone = told([
      HELLO,
      generated(),
      sent(),
      { kind: 'box', box: BOX, online: false, why: 'its stream ended' },
      { kind: 'box', box: BOX, online: true, why: 'http' },
    ]);
    expect(gone.slice(2)).toEqual([
      '# the gateway lost VVB000001: its stream ended. The bench cannot know why, and does nothing about it',
      '# VVB000001 was back',
    ]);
  });

  it('turns a box off for what was done while it was away', () => {
    const lines = told([
      HELLO,
      { kind: 'box', box: BOX, online: false, why: 'its stream ended' },
      generated(),
      sent(SEND, failed('BOX_OFFLINE')),
      { kind: 'box', box: BOX, online: true, why: 'http' },
    ]);
    expect(lines).toEqual([
      '# the gateway lost VVB000001: its stream ended. The bench cannot know why: it turns the box off',
      '- fault: { box: off }',
      '- expect: { unreachable: true }',
      '- push: { amount: 5000, content: A, order: O1, answer: BOX_OFFLINE }',
      'as: order1',
      '- fault: { box: on }',
      '- expect: { online: true, within: 30s }',
    ]);
  });

  it('says what is not whole', () => {
    const lost = fileOf({
      origin: 'x',
      writtenAtMs: 0,
      heard: [HELLO, generated(), sent()].map((it, n) => ({
        n,
        at: '',
        upMs: 0,
        atMs: n,
        ...it,
      })) as unknown as Heard[],
      sights: [],
      lost: 7,
      restartsMs: [],
      account: undefined,
      serials: new Map(),
    });
    expect(lost).toContain('# the gateway had forgotten 7 earlier entries');
    const steps = (lines: string[]) => lines.filter((it) => it.startsWith('- '));
    const many = (count: number, change: object) => Array.from({ length: count }, () => sent({ ...SEND, ...change }));
    expect(steps(told([HELLO, generated(), ...many(1_200, {})]))).toHaveLength(950);
    // Of long ones there are fewer: a scenario has so many characters at most.
    const long = steps(told([HELLO, generated(), ...many(1_200, { content: 'x'.repeat(400) })]));
    expect(long.length).toBeGreaterThan(200);
    expect(long.length).toBeLessThan(400);
  });
});

it.each([
  [300, '300ms'],
  [5_000, '5s'],
  [90_000, '90s'],
  [120_000, '2min'],
  [3_600_000, '1h'],
  [0, '0s'],
])('%d milliseconds are said as %s', (ms, text) => {
  expect(durationText(ms)).toBe(text);
});
