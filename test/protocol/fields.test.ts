import { expect, it } from 'vitest';
import { amountVnd, bankAccount, boxCode, LIMITS, wallTimeMs } from '../../src/protocol/fields.ts';

it('LIM-1 an amount is a whole number of đồng from 1 to 9,999,999,999,999', () => {
  for (const amount of [1, 50_000, 9_999_999_999_999]) expect(amountVnd.safeParse(amount).success).toBe(true);
  const wrong = [
    0,
    -1,
    0.5,
    50_000.01,
    10_000_000_000_000,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    '50000',
    50_000n,
    null,
  ];
  expect(wrong.filter((amount) => amountVnd.safeParse(amount).success)).toEqual([]);
  expect(String(LIMITS.amountMax)).toHaveLength(13);
});

it('LIM-2 an account is 1 to 19 ASCII letters or digits', () => {
  for (const account of ['0', '0123456789', 'VQRQ0001abc', 'A'.repeat(19)]) {
    expect(bankAccount.safeParse(account).success).toBe(true);
  }
  const wrong = [
    '',
    'A'.repeat(20),
    '0123 456',
    '0123-456',
    '0123_456',
    '01é',
    '٠١٢',
    '0123456789\n',
    '+84',
    123,
    null,
  ];
  expect(wrong.filter((account) => bankAccount.safeParse(account).success)).toEqual([]);
});

it('LIM-3 the limits of content and orderId are those of the clause', () => {
  expect(LIMITS).toMatchObject({ contentMax: 25, testCallbackContentMax: 19, pushContentMax: 99, orderIdMax: 64 });
});

it('LIM-4 the limits of bodies and messages are those of the clause', () => {
  expect(LIMITS).toMatchObject({ httpBodyBytesMax: 65_536, messageBytesMax: 16_384 });
});

it('LIM-5 a box code is VVB and six digits', () => {
  for (const code of ['VVB000001', 'VVB409068', 'VVB999999']) expect(boxCode.safeParse(code).success).toBe(true);
  const wrong = [
    '',
    'VVB',
    'VVB00001',
    'VVB0000001',
    'vvb000001',
    'VVB00000A',
    'VVB000001\n',
    ' VVB000001',
    '000001',
    1,
  ];
  expect(wrong.filter((code) => boxCode.safeParse(code).success)).toEqual([]);
});

it('MSG-1 a time is a whole number of milliseconds since 1970', () => {
  expect(wallTimeMs.safeParse(1_721_372_634_000).success).toBe(true);
  expect(
    [-1, 1.5, 253_402_300_800_000, '1721372634000', null].filter((time) => wallTimeMs.safeParse(time).success),
  ).toEqual([]);
});
