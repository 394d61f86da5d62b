import { createHash } from 'node:crypto';
import { BANKS } from '../../../../protocol/banks.ts';
import { Mismatch, PreconditionFailed } from '../../check.ts';
import { binOf, type CheckContext, gap, type ServiceCheck, spec } from '../check-context.ts';
import { type Answer, codeOf, summaryOf } from '../client.ts';
import { expectCode, forEachCase, mayBeTaken } from '../expectations.ts';
import type { Order } from '../subject.ts';
import { whileBoxIsOn } from './pushing.ts';

type Change = Readonly<Record<string, unknown>>;

/** A tolerant service reads these as 5000, the amount in the QR. */
const TOLERABLE_AMOUNTS = [' 5000', '05000'];
const TOLERABLE_AMOUNT = 5_000;

const NO_BOX = { terminalCode: 'VVB999999', serialNumber: '' };

/** `asSecond`: sent by the second partner. */
interface Wrong {
  code: string;
  what: string;
  change: Change;
  asSecond?: boolean;
}

/** Returns one wrong field per refusal, in the order of clause SND-2; SND-5 judges a box that is off. */
function wrongs(t: CheckContext, order: Order): Wrong[] {
  const { second, unlinkedBox } = t.options;
  const other = BANKS.find(({ bin }) => bin !== t.bin);
  const stranger = 'NOSUCHACCOUNT';
  return [
    { code: 'E02', what: 'an amount of 0', change: { amount: '0' } },
    { code: 'E39', what: 'a wrong checkSum', change: { checkSum: '0'.repeat(32) } },
    {
      code: 'E36',
      what: 'an unknown account',
      change: { bankAccount: stranger, qrCode: t.makeQr(order, { account: stranger }) },
    },
    ...(second === undefined ? [] : [{ code: 'E77', what: "another partner's account", change: {}, asSecond: true }]),
    { code: 'E24', what: 'an unknown bank', change: { bankCode: 'NOBANK' } },
    {
      code: 'E51',
      what: 'another bank',
      change: { bankCode: other?.code, qrCode: t.makeQr(order, { bin: other?.bin ?? '' }) },
    },
    { code: 'E35', what: 'an unknown box', change: NO_BOX },
    ...(unlinkedBox === undefined
      ? []
      : [{ code: 'E36', what: 'an unlinked box', change: { terminalCode: unlinkedBox, serialNumber: '' } }]),
    { code: 'QR_INVALID', what: 'no QR', change: { qrCode: 'x' } },
    {
      code: 'QR_MISMATCH',
      what: 'a QR of another amount',
      change: { qrCode: t.makeQr(order, { amount: 1 }) },
    },
  ];
}

function mismatched(t: CheckContext, order: Order): (readonly [what: string, change: Change])[] {
  const otherBin = BANKS.find(({ bin }) => bin !== t.bin)?.bin ?? '';
  return [
    ['another account', { qrCode: t.makeQr(order, { account: 'SOMEBODYELSE' }) }],
    ['another bank', { qrCode: t.makeQr(order, { bin: otherBin }) }],
    ['another amount', { qrCode: t.makeQr(order, { amount: order.amount + 1 }) }],
    ['a card', { qrCode: t.makeQr(order, { service: 'card' }) }],
  ];
}

function sendWrong(t: CheckContext, order: Order, change: Change, asSecond: boolean): Promise<Answer> {
  const as = asSecond ? t.options.second : undefined;
  return t.sendPush(t.pushBody(order, t.makeQr(order), change, as), as);
}

/** A service may compare without regard to case. */
const UPPER_CASE = 'in upper case';

const md5 = (text: string) => createHash('md5').update(text, 'utf8').digest('hex');

export const pushChecks: readonly ServiceCheck[] = [
  spec('SUM-1', 'a wrong checkSum is answered in another way than the right one', ['a box'], async (t) => {
    const right = codeOf(await t.pushOrder());
    if (right === 'E39') throw new Mismatch('the right checkSum is refused with E39');
    const called = await t.pushOrder(t.newOrder(), { checkSum: 'f'.repeat(32) });
    if (codeOf(called) !== right) return;
    // The specification does not say in which order fields are checked.
    if (right !== undefined)
      throw new PreconditionFailed(`needs a push that is accepted, but both are answered ${summaryOf(called)}`);
    throw new Mismatch(`the wrong checkSum is answered alike: ${summaryOf(called)}`);
  }),
  gap(
    'SUM-1',
    'any other checkSum is E39: of another password, order, amount or case, cut or empty',
    ['a box'],
    async (t) => {
      const { password } = t.options.access;
      const order = t.newOrder();
      const body = t.orderPush(order);
      const { bankAccount, amount, bankCode, checkSum } = body;
      const right = String(checkSum);
      const cases = [
        [UPPER_CASE, /[a-f]/.test(right) ? right.toUpperCase() : right.slice(1)],
        ['of another order of fields', md5(`${bankAccount}${password}${amount}${bankCode}`)],
        ['of another password', md5(`not ${password}${bankAccount}${amount}${bankCode}`)],
        ['of another amount', md5(`${password}${bankAccount}1${amount}${bankCode}`)],
        ['without the bank', md5(`${password}${bankAccount}${amount}`)],
        ['without the amount', md5(`${password}${bankAccount}${bankCode}`)],
        ['without the account', md5(`${password}${amount}${bankCode}`)],
        ['without the password', md5(`${bankAccount}${amount}${bankCode}`)],
        ['with another end', `${right.slice(0, -1)}${right.endsWith('0') ? '1' : '0'}`],
        ['with one more character', `${right}0`],
        ['cut short', right.slice(0, -1)],
        ['empty', ''],
      ] as const;
      await whileBoxIsOn(t, () =>
        forEachCase([...cases, ['null', null] as const], async ([what, other]) => {
          const called = await t.sendPush({ ...body, checkSum: other });
          // A field that is null may count as missing (SND-1).
          const code = other === null && codeOf(called) === 'E46' ? 'E46' : 'E39';
          mayBeTaken(() => expectCode(called, code, `a checkSum ${what}`), what === UPPER_CASE);
        }),
      );
    },
  ),
  gap('SND-1', 'a push without a needed field is E46', ['a box'], async (t) => {
    await forEachCase(['bankAccount', 'bankCode', 'amount', 'qrCode', 'checkSum'], async (field) => {
      expectCode(await t.pushOrder(t.newOrder(), { [field]: undefined }), 'E46', `without ${field}`);
    });
    const nameless = t.orderPush(t.newOrder(), { terminalCode: undefined, serialNumber: undefined });
    expectCode(await t.sendPush(nameless), 'E46', 'without terminalCode and serialNumber');
  }),
  gap('SND-1', 'terminalCode or serialNumber is enough, and both must name one box', ['a serial number'], async (t) => {
    await forEachCase(['terminalCode', 'serialNumber'], async (field) => {
      const called = await t.pushOrder(t.newOrder(), { [field]: undefined });
      const code = codeOf(called);
      if (code === 'E46' || code === 'E35') throw new Mismatch(`without ${field} it is answered ${summaryOf(called)}`);
    });
    const two = t.orderPush(t.newOrder(), { serialNumber: 'VVB999999' });
    expectCode(await t.sendPush(two), 'E35', 'two names of different boxes');
  }),
  gap('SND-2', 'a wrong push is refused with its code', ['a box'], (t) => {
    const order = t.newOrder();
    return whileBoxIsOn(t, () =>
      forEachCase(wrongs(t, order), async ({ code, what, change, asSecond }) => {
        expectCode(await sendWrong(t, order, change, asSecond === true), code, what);
      }),
    );
  }),
  gap('SND-2', 'an amount that is no whole number of đồng, as one writes it, is E02', ['a box'], (t) =>
    forEachCase(['', '-1', '1.5', '1e3', '10000000000000', ...TOLERABLE_AMOUNTS], async (amount) => {
      const order = { ...t.newOrder(), amount: TOLERABLE_AMOUNT };
      const called = await t.pushOrder(order, { amount });
      mayBeTaken(
        () => expectCode(called, 'E02', `the amount ${JSON.stringify(amount)}`),
        TOLERABLE_AMOUNTS.includes(amount),
      );
    }),
  ),
  gap('SND-2', 'of several wrong things the first in the order of the clause counts', ['a box'], async (t) => {
    const order = t.newOrder();
    const list = wrongs(t, order);
    await forEachCase([...list.entries()], async ([index, { code, what }]) => {
      const rest = list.slice(index);
      // The list is reversed, because the first of two changes of one field must win.
      const change = Object.assign({}, ...rest.map((it) => it.change).reverse());
      const asSecond = rest.some((it) => it.asSecond === true);
      expectCode(await sendWrong(t, order, change, asSecond), code, `${what}, and all that follows`);
    });
  }),
  gap(
    'SND-2',
    'a QR of another account, bank or amount, or to a card, is QR_MISMATCH; without an amount it is QR_STATIC',
    ['a box'],
    async (t) => {
      const order = t.newOrder();
      await whileBoxIsOn(t, async () => {
        await forEachCase(mismatched(t, order), async ([what, change]) => {
          expectCode(await t.pushOrder(order, change), 'QR_MISMATCH', `a QR of ${what}`);
        });
        const open = await t.pushOrder(order, { qrCode: t.makeQr(order, { amount: undefined }) });
        expectCode(open, 'QR_STATIC', 'a QR without an amount');
      });
    },
  ),
  gap(
    'SND-2',
    'a QR of an account that the box is not linked to is QR_MISMATCH',
    ['a box', 'a partner without an endpoint'],
    async (t) => {
      const { second, secondAccount = '', secondBank = '' } = t.options;
      const order = t.newOrder();
      const qrCode = t.makeQr(order, { account: secondAccount, bin: binOf(secondBank) });
      const named = { bankAccount: secondAccount, bankCode: secondBank };
      const called = await t.sendPush(t.pushBody(order, qrCode, named, second), second);
      expectCode(called, 'QR_MISMATCH', 'a push of another account to the box');
    },
  ),
];
