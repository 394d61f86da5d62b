import { describe, expect, it } from 'vitest';
import { bestContained, findOrder } from '../../src/gateway/money/matching.ts';
import type { OrderFinder } from '../../src/gateway/store/repositories/money-transaction.ts';
import { systemRandom } from '../../src/lib/random.ts';
import { reduced } from '../../src/protocol/bank-text.ts';
import { isOrderCode, makeOrderCode, orderCodesIn } from '../../src/protocol/order-code.ts';
import { fc } from '../support/properties.ts';

/** Letters and digits of codes, and those that codes do not have. */
const CODE_CHARS = '23456789ABCDEFGHJKLMNPQRSTUVWXYZ';
const code = fc.string({ unit: fc.constantFrom(...CODE_CHARS), minLength: 6, maxLength: 6 }).map((chars) => {
  const bytes = Buffer.from([...chars].map((char) => CODE_CHARS.indexOf(char)));
  return makeOrderCode({ ...systemRandom, secret: () => bytes.toString('base64url') });
});

/** What banks make of a text: its case, breaks, blanks, and what they write before and after it. */
const mangling = fc.record({
  before: fc.constantFrom('', 'MBVCB.3278907687.', 'IBFT ', 'CT DEN:000001-', 'Chuyển tiền '),
  after: fc.constantFrom('', '.CT tu 9990001 NGUYEN VAN B', '-GD 123', ' FT26001', ' thanh toán'),
  isLower: fc.boolean(),
  breakAt: fc.nat(40),
  breakBy: fc.constantFrom('', ' ', '\n', '\r\n', '.', '-', '  '),
});
type Mangling = typeof mangling extends fc.Arbitrary<infer It> ? It : never;

function mangled(text: string, { before, after, isLower, breakAt, breakBy }: Mangling): string {
  const at = breakAt % text.length;
  const broken = `${text.slice(0, at)}${at === 0 ? '' : breakBy}${text.slice(at)}`;
  return `${before}${isLower ? broken.toLowerCase() : broken}${after}`;
}

const LETTERS = 'ABCDEFGHKLMNPRSTUVXY';
const content = fc
  .tuple(
    fc.string({ unit: fc.constantFrom(...LETTERS), minLength: 2, maxLength: 6 }),
    fc.string({ unit: fc.constantFrom(...'0123456789'), minLength: 2, maxLength: 6 }),
  )
  .map((parts) => parts.join(''));

const waiting = (text: string, status: 'created' | 'pushed' | 'shown' | 'paid' = 'created') =>
  ({ content: text, status }) as const;

describe('MAT-1', () => {
  it('MAT-1 a code stands in whatever banks make of its content', () => {
    fc.assert(
      fc.property(code, content, mangling, (it, rest, how) => {
        expect(isOrderCode(it)).toBe(true);
        expect(orderCodesIn(reduced(mangled(`${it} ${rest}`, how)))).toContain(it);
        // Banks cut long texts at their end.
        expect(orderCodesIn(reduced(mangled(`${it} ${rest}`, { ...how, before: '' }).slice(0, 50)))).toContain(it);
      }),
    );
  });

  it('MAT-1 a code with one wrong character is no code', () => {
    fc.assert(
      fc.property(code, fc.integer({ min: 2, max: 8 }), fc.constantFrom(...CODE_CHARS), (it, at, char) => {
        const other = `${it.slice(0, at)}${char}${it.slice(at + 1)}`;
        expect(isOrderCode(other)).toBe(other === it);
      }),
    );
  });

  it('MAT-1 codes have no character that people confuse, and are not the same twice', () => {
    const made = Array.from({ length: 500 }, () => makeOrderCode(systemRandom));
    for (const it of made) expect(it).toMatch(/^PB[2-9A-HJ-NP-Z]{7}$/);
    expect(new Set(made).size).toBe(made.length);
  });
});

describe('MAT-3', () => {
  it('MAT-3 a content is found in whatever banks make of it, and no other is', () => {
    fc.assert(
      fc.property(content, mangling, fc.array(content, { maxLength: 20 }), (it, how, others) => {
        const text = mangled(it, how);
        const found = bestContained(
          text,
          [...others, it].map((one) => waiting(one)),
        );
        expect(reduced(text)).toContain(found?.content);
        expect(found?.content.length).toBeGreaterThanOrEqual(it.length);
      }),
    );
  });

  it.each<[what: string, text: string, contents: string[], found: string | undefined]>([
    ['as it is', 'DH001', ['DH001'], 'DH001'],
    ['between blanks', 'CT DEN DH001 NGUYEN VAN A', ['DH001'], 'DH001'],
    ['in small letters with accents', 'thanh toán đơn hàng a1', ['DON HANG A1'], 'DON HANG A1'],
    ['broken', 'MBVCB DH0\n01 CT', ['DH001'], 'DH001'],
    ['not in a longer number', 'CT DH0012 GD', ['DH001'], undefined],
    ['not in a longer word where blanks are', 'CT XDH001 GD', ['DH001'], undefined],
    ['in a word where the bank dropped blanks', 'MBVCBDH001CHUYENTIEN', ['DH001'], 'DH001'],
    ['not in a number even then', 'MBVCBDH0012CHUYENTIEN', ['DH001'], undefined],
    ['not after a digit even then', 'FT261234DH', ['34DH'], undefined],
    ['the longest', 'CT DH001 BAN 7', ['DH001', 'DH001 BAN 7', 'BAN 7'], 'DH001 BAN 7'],
    ['of two characters only as the whole text', 'CT A1 GD', ['A1'], undefined],
    ['of two characters as the whole text', ' a-1 ', ['A1'], 'A1'],
    ['of nothing never', '', ['', '...'], undefined],
    ['of nothing not in a text', 'CT', [''], undefined],
  ])('MAT-3 a content is found %s', (_what, text, contents, found) => {
    expect(
      bestContained(
        text,
        contents.map((it) => waiting(it)),
      )?.content,
    ).toBe(found);
  });

  it('MAT-3 of two equally long ones that on a box wins, then that on its way, then the unpaid one', () => {
    const orders = [waiting('DH1 A', 'paid'), waiting('DH1A'), waiting('DH 1A', 'pushed'), waiting('DH1 a', 'shown')];
    for (let from = 0; from < orders.length; from += 1) {
      const left = orders.slice(0, orders.length - from);
      expect(bestContained('CT DH1A', left)).toBe(left.at(-1) === orders[0] ? orders[0] : left.at(-1));
    }
  });
});

describe('MAT-2', () => {
  const [first = '', second = ''] = [makeOrderCode(systemRandom), makeOrderCode(systemRandom)];
  const named = (id: string, it: string, paid: number, status: 'created' | 'paid' = 'created') => ({
    ...{ id, code: it, amount: 100, paid, status, content: `${it} DH` },
  });
  const finder = (
    orders: ReturnType<typeof named>[],
    byAmount: OrderFinder['byAmount'] = async () => [],
  ): OrderFinder => ({
    byRequest: async () => undefined,
    byCodes: async (codes) => orders.filter((it) => codes.includes(it.code)),
    byAmount,
  });
  const found = (text: string, amount: number, orders: ReturnType<typeof named>[]) =>
    findOrder({ text, amount, source: 'till', bank_time_ms: 9 }, finder(orders));

  it('MAT-2 the order of the code gets the money, whatever the amount', async () => {
    const orders = [named('a', first, 0), named('b', second, 0)];
    for (const amount of [1, 100, 5000]) expect(await found(`x${second} y`, amount, orders)).toBe('b');
    expect(await found('x', 100, orders)).toBeUndefined();
  });

  it('MAT-2 THR-44 of two codes the first of an unpaid order wins, whatever amount is missing from another, else the first', async () => {
    const text = `${first} ${second}`;
    expect(await found(text, 40, [named('a', first, 0), named('b', second, 60)])).toBe('a');
    expect(await found(text, 7, [named('b', second, 100, 'paid'), named('a', first, 100, 'paid')])).toBe('a');
    expect(await found(text, 7, [named('a', first, 100, 'paid'), named('b', second, 60)])).toBe('b');
    expect(await found(text, 7, [named('b', second, 60), named('a', first, 0)])).toBe('a');
  });

  it('MAT-2 THR-44 a code that a bank has cut and completed behind that of the QR takes no money from it', async () => {
    const orders = [named('customer', first, 1), named('friend', second, 0)];
    const content = `${first} A${second.slice(0, -1)}0ZZ`;
    const text = `${content.slice(0, first.length + 2 + second.length - 1)} ${second.at(-1)}T DEN TU 0123`;
    expect(await found(text, 100, orders)).toBe('customer');
    const mixed = `VQR0123456789 ${second} CT`;
    expect(await found(mixed, 100, [named('v', 'VQR0123456789', 1), named('friend', second, 0)])).toBe('v');
  });

  it('MAT-2 a code of the public service finds its order too', async () => {
    const orders = [named('v', 'VQR0123456789', 0)];
    expect(await found('MBVCB vqr01234 56789 DH', 100, orders)).toBe('v');
  });

  it('MAT-3 MAT-4 without a code the content is sought among orders of this amount, and the amount alone finds none', async () => {
    const asked: number[] = [];
    const amounts = finder([], async (amount) => {
      asked.push(amount);
      return [{ id: 'c', content: 'DH7', status: 'created' }];
    });
    expect(await findOrder({ text: 'CT DH7', amount: 9, source: 'till', bank_time_ms: 9 }, amounts)).toBe('c');
    expect(await findOrder({ text: 'CT', amount: 9, source: 'till', bank_time_ms: 9 }, amounts)).toBeUndefined();
    expect(asked).toEqual([9, 9]);
  });
});
