// biome-ignore-all lint/suspicious/noTemplateCurlyInString: it is how scenarios write variables
import { describe, expect, it } from 'vitest';
import { cutToDifference, difference } from '../../src/bench/scenarios/difference.ts';
import { durationMs } from '../../src/bench/scenarios/durations.ts';
import { Scope } from '../../src/bench/scenarios/scope.ts';
import { seededRandom } from '../../src/lib/random.ts';

const SEED = 7;

describe('variables', () => {
  const scope = new Scope({
    amount: 50_000,
    push: { qrCode: 'QR', list: ['a', 'b'] },
    none: null,
    yes: true,
    sent: '7',
  });
  const fill = (value: unknown, from = scope) => from.fill(value, seededRandom(SEED));

  it.each([
    ['${amount}', 50_000],
    ['DH${amount}', 'DH50000'],
    ['${push.qrCode}${push.list.1}', 'QRb'],
    ['${ amount }', 50_000],
    ['${none}', null],
    ['$amount', '$amount'],
    [{ a: ['${amount}', 1] }, { a: [50_000, 1] }],
  ])('%j stands for %j', (value, filled) => {
    expect(fill(value)).toEqual(filled);
  });

  it.each([
    ['1 + 2 * 3', 7],
    ['(1 + 2) * 3', 9],
    ['10 - 3 - 2', 5],
    ['-(amount - 1)', -49_999],
    ['amount % 7', 6],
    ['-1 % 3', 2],
    ['sent + 1', 8],
    ['floor(7 / 2)', 3],
    ['round(7 / 2)', 4],
    ['ceil(7 / 2)', 4],
    ['floor(-7 / 2)', -4],
    ['round(-7 / 2)', -3],
    ['ceil(-7 / 2)', -3],
    ['round(amount * 15 / 1000)', 750],
    ['round((amount + 1) / -3)', -16_667],
    ['round(9007199254740991 / 2)', 4_503_599_627_370_496],
    ['floor(6 / 3)', 2],
    ['amount == 50000', true],
    ["amount == '50000' and sent != 8", true],
    ['not yes or 1 >= 2', false],
    ['1 < 2 and not (2 < 1)', true],
    ["pick('A')", 'A'],
    ['random(5, 5)', 5],
  ])('%s is %j', (expression, value) => {
    expect(fill(`\${${expression}}`)).toBe(value);
  });

  it.each([
    ['', 'something is missing at the end'],
    ['1 +', 'something is missing at the end'],
    ['1 2', '"2" is not expected there'],
    ['(1', 'expected )'],
    ['50.000', '"50.000" is not understood'],
    ['a & b', '"& b" is not understood'],
    ['amount / 2', 'a division says how it rounds: floor(a / b), round(a / b) (halves up) or ceil(a / b)'],
    ['(amount / 2)', 'a division says how it rounds: '],
    ['floor(7)', 'expected floor(A / B)'],
    ['floor(7 / 2 / 2)', 'expected floor(A / B)'],
    ['random(1)', 'expected random(FROM, TO)'],
    ['random(2, 1)', 'random(2, 1): expected the smaller number first'],
    ['sqrt(4)', 'there is no function sqrt; expected one of random(FROM, TO), pick(A, B, …), floor'],
    ['floor(1 / 0)', '1 is divided by zero'],
    ["'DH' + 1", 'expected a whole number, is "DH"'],
    ['9007199254740991 + 1', 'the number is too large to be exact'],
    ['9007199254740992', 'expected a whole number, is "9007199254740992"'],
    ['not 1', 'expected true or false, is 1'],
    ['x'.repeat(201), 'has 201 characters, expected at most 200'],
  ])('%s is a mistake', (expression, message) => {
    expect(() => fill(`\${${expression}}`)).toThrow(`\${${expression}}: ${message}`);
  });

  it('variables are chosen by the seed, and are the same for the same seed', () => {
    const chosen = (seed: number) => {
      const random = seededRandom(seed);
      return Array.from({ length: 40 }, () => scope.fill('${random(-2, 2)} ${pick(1, amount)}', random));
    };
    expect(chosen(1)).toEqual(chosen(1));
    expect(chosen(1)).not.toEqual(chosen(2));
    const [first, second] = [new Set<string>(), new Set<string>()];
    for (const it of [...chosen(1), ...chosen(2)]) {
      const [number = '', picked = ''] = it.split(' ');
      first.add(number);
      second.add(picked);
    }
    expect([[...first].sort(), [...second].sort()]).toEqual([
      ['-1', '-2', '0', '1', '2'],
      ['1', '50000'],
    ]);
  });

  it.each(['${nothing}', '${push.qr}', '${push.qrCode.length.x}', '${push.constructor}'])(
    '%s is not defined, and the known ones are named',
    (text) => {
      expect(() => fill(text)).toThrow(`${text} is not defined here; known variables: amount, none, push, sent, yes`);
    },
  );

  it('variables of a repeat stay, but for its counter', () => {
    const outer = new Scope({ total: 0 });
    const inner = outer.loop({ n: 1 });
    inner.set('total', fill('${total + n}', inner));
    inner.set('made', 2);
    expect(fill('${total} ${made}', outer)).toBe('1 2');
    expect(() => fill('${n}', outer)).toThrow('is not defined here');
  });

  it('variables of parallel lists are their own until all have ended; then a name of one of them stays', () => {
    const outer = new Scope({ many: 3 });
    const branches = [outer.branch({ branch: 1 }), outer.branch({ branch: 2 })] as const;
    branches[0].set('many', 1);
    branches[0].set('push', 'A');
    branches[1].set('push', 'B');
    branches[1].loop({ n: 1 }).set('other', 'C');
    expect(fill('${many}', branches[1])).toBe(3);
    outer.adopt(branches, ['branch']);
    expect(fill('${many} ${other}', outer)).toBe('1 C');
    expect(() => fill('${push}', outer)).toThrow('${push} is made in several lists of `parallel`');
    expect(() => fill('${branch}', outer)).toThrow('is not defined here');
  });

  it('variables of several boxes belong to no box', () => {
    const outer = new Scope({ push: 'before' });
    const branches = [outer.branch({ n: 1 }), outer.branch({ n: 2 })];
    for (const branch of branches) branch.set('push', 'own');
    outer.forget(branches, ['n']);
    expect(() => fill('${push}', outer)).toThrow('${push} is made for each box: use it there');
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

describe('two sides', () => {
  it.each([
    ['short', 'other', ['short', 'other']],
    [
      `${'0'.repeat(70)}A${'1'.repeat(70)}`,
      `${'0'.repeat(70)}B`,
      [`…${'0'.repeat(12)}A${'1'.repeat(47)}…`, `…${'0'.repeat(12)}B`],
    ],
    [`A${'1'.repeat(70)}`, 'B', [`A${'1'.repeat(59)}…`, 'B']],
  ])('%s and %s are cut to where they differ', (left, right, cut) => {
    expect(cutToDifference(left, right)).toEqual(cut);
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
    expect(difference(actual, expected)?.reason).toBe(problem);
  });
});
