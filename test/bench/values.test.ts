// biome-ignore-all lint/suspicious/noTemplateCurlyInString: it is how scenarios write variables
import { describe, expect, it } from 'vitest';
import { difference, durationMs, Scope } from '../../src/bench/vocabulary/variables.ts';

describe('variables', () => {
  const scope = new Scope({ amount: 50_000, push: { qrCode: 'QR', list: ['a', 'b'] }, none: null });

  it.each([
    ['${amount}', 50_000],
    ['DH${amount}', 'DH50000'],
    ['${push.qrCode}${push.list.1}', 'QRb'],
    ['${ amount }', 50_000],
    ['${none}', null],
    ['$amount', '$amount'],
    [{ a: ['${amount}', 1] }, { a: [50_000, 1] }],
  ])('%j stands for %j', (value, filled) => {
    expect(scope.fill<unknown>(value)).toEqual(filled);
  });

  it.each(['${nothing}', '${push.qr}', '${push.qrCode.length.x}', '${push.constructor}', '${}'])(
    '%s is not defined, and the known ones are named',
    (text) => {
      expect(() => scope.fill(text)).toThrow(`${text} is not defined here; known variables: amount, none, push`);
    },
  );

  it('of an inner list hide those outside, and are gone after it', () => {
    const inner = scope.inner({ amount: 1 });
    inner.set('n', 2);
    expect(inner.fill('${amount} ${n} ${push.qrCode}')).toBe('1 2 QR');
    expect(scope.fill('${amount}')).toBe(50_000);
    expect(() => scope.fill('${n}')).toThrow('is not defined here');
  });
});

describe('times', () => {
  it.each([
    ['300ms', 300],
    ['5s', 5_000],
    ['1.5s', 1_500],
    ['2 min', 120_000],
    ['1h', 3_600_000],
    ['5', undefined],
    ['5m', undefined],
    ['-5s', undefined],
    ['1e3s', undefined],
  ])('%s is %s ms', (text, ms) => {
    expect(durationMs(text)).toBe(ms);
  });
});

describe('a difference', () => {
  const actual = { state: 'paid', lastPayment: { amount: 50_000, orderId: 'A' }, order: null, list: [1, { n: 2 }] };

  it.each([
    [{ state: 'paid' }, undefined],
    [{ lastPayment: { amount: '50000' } }, undefined],
    [{ order: null }, undefined],
    [{ lastPayment: { amount: 1 } }, 'lastPayment.amount: expected 1, is 50000'],
    [{ order: { orderId: 'A' } }, 'order: expected an object, is null'],
    [{ fault: 'x' }, 'fault: expected "x", is nothing'],
    [{ list: ['1', { n: 2 }] }, undefined],
    [{ list: [1, { n: 3 }] }, 'list.1.n: expected 3, is 2'],
    [{ list: [1] }, 'list: expected [1], is [1,{"n":2}]'],
    [{ list: [] }, 'list: expected [], is [1,{"n":2}]'],
    [{ lastPayment: [] }, 'lastPayment: expected [], is {"amount":50000,"orderId":"A"}'],
    [{ toString: 'x' }, 'toString: expected "x", is nothing'],
  ])('to %j is named', (expected, problem) => {
    expect(difference(actual, expected)).toBe(problem);
  });
});
