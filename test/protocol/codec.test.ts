import { expect, it } from 'vitest';
import { dueOf } from '../../src/gateway/store/repositories/credit-sides.ts';
import { type Decoded, decodeDown, decodePresence, decodeUp, encode } from '../../src/protocol/codec.ts';
import type { DownMessage, UpMessage } from '../../src/protocol/messages.ts';
import { anyChar, fc } from '../support/properties.ts';
import { DOWN, PRESENCE, UP } from './examples.ts';

type Shape = Record<string, unknown>;
type Decode = (bytes: Uint8Array | string) => Decoded<unknown>;

/** Every legal message with its decoder. */
const CASES: [name: string, decode: Decode, message: Shape][] = [
  ...Object.values(DOWN).map((message): [string, Decode, Shape] => [message.type, decodeDown, message]),
  ...Object.values(UP).map((message): [string, Decode, Shape] => [message.type, decodeUp, message]),
  ['presence', decodePresence, PRESENCE],
];

/** Fields that a gateway may not know yet (MSG-13). */
const NEWER = ['mode', 'sandboxMark', 'late', 'due'];

function refusal(decode: Decode, bytes: unknown): string {
  const text = bytes instanceof Uint8Array || typeof bytes === 'string' ? bytes : JSON.stringify(bytes);
  const decoded = decode(text);
  if (decoded.ok) throw new Error(`accepted: ${JSON.stringify(decoded.value)}`);
  expect(decoded.reason).toMatch(/^.+$/);
  expect(decoded.reason.length).toBeLessThan(1200);
  return decoded.reason;
}

it.each(CASES)('MSG-1 MSG-2 %s survives the wire as text and as UTF-8 bytes', (_, decode, message) => {
  const text = JSON.stringify(message);
  expect(decode(text)).toStrictEqual({ ok: true, value: message });
  expect(decode(new TextEncoder().encode(text))).toStrictEqual({ ok: true, value: message });
});

it('MSG-1 is encoded as JSON', () => {
  const all: (DownMessage | UpMessage)[] = [...Object.values(DOWN), ...Object.values(UP)];
  for (const message of all) expect(JSON.parse(encode(message))).toStrictEqual(message);
  expect(JSON.parse(encode(PRESENCE))).toStrictEqual(PRESENCE);
});

it('MSG-2 a box is not told what only a box says, nor the other way round', () => {
  for (const message of Object.values(UP)) expect(refusal(decodeDown, message)).toMatch(/^type: /);
  for (const message of Object.values(DOWN)) expect(refusal(decodeUp, message)).toMatch(/^type: /);
});

it('MSG-2 a null link and a null push are legal', () => {
  for (const message of [
    { ...DOWN.welcome, link: null },
    { ...DOWN.payment, pushId: null },
  ]) {
    expect(decodeDown(JSON.stringify(message))).toStrictEqual({ ok: true, value: message });
  }
});

it('MSG-13 a gateway that knows neither modes nor late payments is understood', () => {
  const { mode: _mode, sandboxMark: _mark, ...welcome } = DOWN.welcome;
  const { late: _late, due: _due, ...payment } = DOWN.payment;
  expect(decodeDown(JSON.stringify(welcome))).toStrictEqual({ ok: true, value: welcome });
  expect(decodeDown(JSON.stringify(payment))).toStrictEqual({
    ok: true,
    value: { ...payment, late: false, due: null },
  });
});

const AMOUNT_MAX = 9_999_999_999_999;

it('MSG-13 due has more than the largest amount where an order of it was overpaid', () => {
  for (const amount of [1, AMOUNT_MAX]) {
    const told = dueOf(amount, amount + AMOUNT_MAX);
    expect(told).toEqual({ amount, paid: amount + AMOUNT_MAX });
    expect(decodeDown(JSON.stringify({ ...DOWN.payment, due: told }))).toMatchObject({
      ok: true,
      value: { due: told },
    });
    expect(dueOf(amount, amount + AMOUNT_MAX + 7)).toEqual(told);
  }
});

it.each([
  { amount: 0, paid: 50_000 },
  { amount: 1, paid: 2 * AMOUNT_MAX + 1 },
  { amount: 50_000, paid: 0 },
  { amount: 50_000, paid: 1.5 },
  { amount: 50_000 },
])('MSG-13 due %j is refused', (due) => {
  expect(refusal(decodeDown, { ...DOWN.payment, due })).toMatch(/^due\./);
});

it.each(CASES)('MSG-3 %s loses unknown fields', (_, decode, message) => {
  const more = JSON.stringify({ ...message, extra: 1, constructor: {}, toString: null });
  expect(decode(more)).toStrictEqual({ ok: true, value: message });
  expect(decode(more.replace('{', '{"__proto__":{"polluted":true},'))).toStrictEqual({ ok: true, value: message });
});

it('MSG-3 the linked account loses unknown fields', () => {
  const more = { ...DOWN.welcome, link: { ...DOWN.welcome.link, secret: 'x' } };
  expect(decodeDown(JSON.stringify(more))).toStrictEqual({ ok: true, value: DOWN.welcome });
});

it.each(CASES)('MSG-3 %s without one of its fields is refused by its name', (_, decode, message) => {
  for (const key of Object.keys(message).filter((field) => !NEWER.includes(field))) {
    expect(refusal(decode, { ...message, [key]: undefined })).toContain(`${key}: `);
  }
});

it.each(CASES)('MSG-3 %s with a field of another type is refused by its name', (_, decode, message) => {
  for (const [key, value] of Object.entries(message)) {
    const others = [[], {}, true, 'x'.repeat(2000), -1, 1.5].filter((other) => typeof other !== typeof value);
    for (const other of others) {
      expect(refusal(decode, { ...message, [key]: other })).toMatch(new RegExp(`^${key}[.:]`));
    }
  }
});

it.each<[string, Decode, Shape, string]>([
  ['another version', decodeDown, { ...DOWN.ack, v: 2 }, 'v'],
  ['an id that is no UUID', decodeDown, { ...DOWN.ack, id: 'x' }, 'id'],
  ['a time with a fraction', decodeUp, { ...UP.shown, sentAtMs: 1.5 }, 'sentAtMs'],
  ['a time before 1970', decodeUp, { ...UP.shown, sentAtMs: -1 }, 'sentAtMs'],
  ['an unknown type', decodeUp, { ...UP.shown, type: 'reboot' }, 'type'],
  ['an amount of zero', decodeDown, { ...DOWN.show, amount: 0 }, 'amount'],
  ['an amount with a fraction', decodeDown, { ...DOWN.show, amount: 0.5 }, 'amount'],
  ['an amount as text', decodeDown, { ...DOWN.show, amount: '50000' }, 'amount'],
  ['an amount of 14 digits', decodeDown, { ...DOWN.payment, amount: 10_000_000_000_000 }, 'amount'],
  ['an account with a space', decodeDown, { ...DOWN.show, bankAccount: '0123 456' }, 'bankAccount'],
  ['an empty bank code', decodeDown, { ...DOWN.show, bankCode: '' }, 'bankCode'],
  ['an empty QR', decodeDown, { ...DOWN.show, qrCode: '' }, 'qrCode'],
  ['a QR of 513 characters', decodeDown, { ...DOWN.show, qrCode: '0'.repeat(513) }, 'qrCode'],
  ['a content of 100 characters', decodeDown, { ...DOWN.show, content: 'x'.repeat(100) }, 'content'],
  ['an orderId of 65 characters', decodeUp, { ...UP.paid, orderId: 'x'.repeat(65) }, 'orderId'],
  ['a lifetime of more than a day', decodeDown, { ...DOWN.show, expiresInMs: 86_400_001 }, 'expiresInMs'],
  ['a negative lifetime', decodeDown, { ...DOWN.show, expiresInMs: -1 }, 'expiresInMs'],
  ['an unknown reason to withdraw', decodeDown, { ...DOWN.withdraw, why: 'mood' }, 'why'],
  ['an unknown code', decodeDown, { ...DOWN.refused, code: 'E00' }, 'code'],
  ['an ack of nothing', decodeDown, { ...DOWN.ack, reportIds: [] }, 'reportIds'],
  ['an ack of no UUID', decodeDown, { ...DOWN.ack, reportIds: ['x'] }, 'reportIds.0'],
  ['an ack of 101 reports', decodeDown, { ...DOWN.ack, reportIds: Array(101).fill(DOWN.ack.id) }, 'reportIds'],
  ['a link without an account', decodeDown, { ...DOWN.welcome, link: {} }, 'link.bankAccount'],
  ['a box code without VVB', decodeUp, { ...UP.hello, terminalCode: '000001' }, 'terminalCode'],
  ['a refusal with a code that is no box refusal', decodeUp, { ...UP.rejected, code: 'E39' }, 'code'],
  ['a reason of 301 characters', decodeUp, { ...UP.rejected, reason: 'x'.repeat(301) }, 'reason'],
  ['an unknown end', decodeUp, { ...UP.ended, how: 'eaten' }, 'how'],
])('MSG-3 %s is refused', (_, decode, message, path) => {
  expect(refusal(decode, message)).toMatch(new RegExp(`^${path}: `));
});

it.each(CASES)('MSG-3 what is no JSON object is refused instead of %s', (_, decode, message) => {
  for (const json of ['null', '[]', '1', '"x"', 'true', `[${JSON.stringify(message)}]`]) refusal(decode, json);
  for (const text of ['', ' ', '{', 'undefined', 'NaN', `${JSON.stringify(message)}x`, "{'v':1}"]) {
    expect(refusal(decode, text)).toBe('message is not UTF-8 JSON');
  }
});

it('MSG-1 bytes that are not UTF-8 are refused, not repaired', () => {
  const text = JSON.stringify({ ...DOWN.show, content: 'A?' });
  const bytes = new TextEncoder().encode(text);
  for (const byte of [0xff, 0xc0, 0x80, 0xed]) {
    expect(refusal(decodeDown, bytes.with(text.indexOf('A?') + 1, byte))).toBe('message is not UTF-8 JSON');
  }
});

it.each(CASES)(
  'LIM-4 %s of 16,384 bytes is read, one byte more is refused before it is parsed',
  (_, decode, message) => {
    const json = JSON.stringify(message);
    const padded = json + ' '.repeat(16_384 - Buffer.byteLength(json));
    expect(decode(padded)).toStrictEqual({ ok: true, value: message });
    expect(decode(Buffer.from(padded))).toStrictEqual({ ok: true, value: message });
    for (const tooLarge of [`${padded} `, Buffer.from(`${padded} `), '{'.repeat(16_385), 'ệ'.repeat(5_462)]) {
      expect(refusal(decode, tooLarge)).toMatch(/^message of \d+ bytes, the limit is 16384$/);
    }
  },
);

it('MSG-3 random bytes are refused without an exception', () => {
  const anything = fc.oneof(fc.uint8Array({ maxLength: 200 }), fc.string({ unit: anyChar }), fc.json());
  fc.assert(
    fc.property(anything, (bytes) => {
      for (const decode of [decodeDown, decodeUp, decodePresence]) refusal(decode, bytes);
    }),
    { numRuns: 2000 },
  );
});
