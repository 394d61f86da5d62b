import { BANKS, findBank } from '../../../../protocol/banks.ts';
import { PATHS } from '../../../../protocol/http-api.ts';
import { decodeVietQr, type VietQr } from '../../../../protocol/vietqr.ts';
import { Breach, Mismatch, PreconditionFailed } from '../../check.ts';
import { type Body, binOf, type CheckContext, gap, type ServiceCheck, spec } from '../check-context.ts';
import { type Answer, isRefusal, summaryOf } from '../client.ts';
import {
  expectCode,
  expectFacts,
  expectQr,
  expectSame,
  forEachCase,
  mayBeTaken,
  unlessTaken,
} from '../expectations.ts';
import { recordOf } from '../json.ts';
import { callbackBody, payOrder } from './callbacks.ts';
import { EVERY_SIZE, forEachAmount } from './sizes.ts';

const CONTENT_MAX = 25;
const CONTENTS = ['don hang So 7', 'Ban  3   Tang 2', ' DH 12 ', 'a B.c,d-e_f/g:h#9'];
/** Requests that are sent at the same time. */
const TOGETHER = 4;

/** Returns a generate request for each qrType. */
export function bodiesByType(t: CheckContext): Record<'dynamic' | 'static' | 'semi-dynamic', Record<string, unknown>> {
  const { orderId, transType, amount, ...every } = t.generateBody();
  const terminalCode = t.options.box?.terminalCode;
  return {
    dynamic: { ...every, orderId, transType, amount },
    static: { ...every, qrType: 1, terminalCode },
    'semi-dynamic': { ...every, qrType: 3, terminalCode, amount, serviceCode: 'S1' },
  };
}

/** Returns the decoded QR of an answer. Throws PreconditionFailed without one: GEN-1 and QRP judge that. */
export async function decodedQr(t: CheckContext, body: Body): Promise<VietQr> {
  const called = await t.generate(body);
  if (called.status !== 200) throw new PreconditionFailed(`needs a QR: the answer is ${summaryOf(called)}`);
  return decodedIn(called);
}

/** Returns the decoded QR in an answer. Throws PreconditionFailed without one. */
function decodedIn(called: Answer): VietQr {
  const { qrCode } = recordOf(called.json);
  const decoded = typeof qrCode === 'string' ? decodeVietQr(qrCode) : undefined;
  if (decoded?.ok === true) return decoded.value;
  throw new PreconditionFailed(`needs a valid QR: the answer is ${summaryOf(called)}`);
}

/** Without these a QR pays nobody, or nothing. A tolerant service fills in the others. */
const MONEY_FIELDS = new Set(['bankCode', 'bankAccount', 'amount']);
/** The specification leaves open whether they are required (PROTOCOL.md, clause LEN-4). */
const OPEN_FIELDS = new Set(['orderId', 'transType']);

async function expectMissing(t: CheckContext, body: Record<string, unknown>, fields: readonly string[]): Promise<void> {
  await forEachCase(fields, async (field) => {
    const called = await t.generate({ ...body, [field]: undefined });
    const judge = () => expectCode(called, 'E46', `without ${field}`);
    if (OPEN_FIELDS.has(field)) unlessTaken(called, judge);
    else mayBeTaken(judge, !MONEY_FIELDS.has(field));
  });
}

/** Returns one wrong field per refusal, in the order of clause GEN-2. */
const WRONG: readonly (readonly [code: string, change: Record<string, unknown>])[] = [
  ['E02', { amount: 0 }],
  ['E03', { transType: 'X' }],
  ['E10', { bankAccount: 'not an account' }],
  ['E24', { bankCode: 'NOBANK' }],
  ['E26', { content: 'X'.repeat(CONTENT_MAX + 1) }],
  ['E34', { content: 'Cà phê' }],
  ['E35', { terminalCode: 'VVB999999' }],
];

const MORE_WRONG: readonly (readonly [code: string, change: Record<string, unknown>])[] = [
  ['E02', { amount: -1 }],
  ['E02', { amount: 1.5 }],
  ['E34', { content: 'a@b' }],
];

/** Expects this code. The specification has no terminalCode in generate, so a service may take a wrong one (E35). */
function expectWrong(called: Answer, code: string, what: string): void {
  mayBeTaken(() => expectCode(called, code, what), code === 'E35');
}

/** Type, point of initiation, and whether the QR has an amount. */
const BY_TYPE = [
  ['dynamic', 'dynamic', true],
  ['semi-dynamic', 'dynamic', true],
  ['static', 'static', false],
] as const;

export const generateChecks: readonly ServiceCheck[] = [
  spec('GEN-1', 'the request of the usage example gets a QR', [], async (t) => {
    expectQr(await t.generate(t.generateBody()), 'the request');
  }),
  gap('GEN-1', 'a missing qrType is 0', [], async (t) =>
    expectQr(await t.generateWith({ qrType: undefined }), 'without qrType'),
  ),
  gap('GEN-1', 'a holder may have Vietnamese letters', [], async (t) => {
    const called = await t.generateWith({ userBankName: 'NGUYỄN VĂN Ả' });
    if (called.status >= 500) throw new Breach(`the answer is ${summaryOf(called)}`);
    expectQr(called, 'the holder NGUYỄN VĂN Ả');
  }),
  gap('GEN-1', 'a dynamic QR without a needed field is E46', [], (t) => {
    const fields = ['bankCode', 'bankAccount', 'userBankName', 'content', 'amount', 'orderId', 'transType'];
    return expectMissing(t, t.generateBody(), fields);
  }),
  gap('GEN-1', 'qrType 1 is static, 3 is semi-dynamic; each without a needed field is E46', ['a box'], async (t) => {
    const bodies = bodiesByType(t);
    expectQr(await t.generate(bodies.static), 'qrType 1');
    expectQr(await t.generate(bodies['semi-dynamic']), 'qrType 3');
    await expectMissing(t, bodies.static, ['terminalCode', 'content']);
    await expectMissing(t, bodies['semi-dynamic'], ['terminalCode', 'amount', 'serviceCode']);
    const other = await t.generate({ ...bodies.dynamic, qrType: 2 });
    mayBeTaken(() => expectCode(other, 'E46', 'qrType 2'));
  }),
  gap('GEN-2', 'a wrong field is refused with its code', [], (t) =>
    forEachCase([...WRONG, ...MORE_WRONG], async ([code, change]) => {
      expectWrong(await t.generateWith(change), code, JSON.stringify(change));
    }),
  ),
  gap('GEN-2', 'a transType in lower case is E03', [], async (t) => {
    const called = await t.generateWith({ transType: 'c' });
    mayBeTaken(() => expectCode(called, 'E03', 'transType c'));
  }),
  gap('GEN-2', 'content may have spaces and . , - _ / : #', [], async (t) => {
    const body = { ...t.generateBody(), content: 'a B.c,d-e_f/g:h#9' };
    expectQr(await t.generate(body), `the content ${body.content}`);
  }),
  gap('GEN-2', 'of several wrong fields the first in the order of the clause counts', [], (t) =>
    forEachCase([...WRONG.entries()], async ([index, [code]]) => {
      const changes = WRONG.slice(index).map(([, change]) => change);
      // The list is reversed, because the first of two changes of one field must win.
      const body = Object.assign({}, t.generateBody(), ...changes.reverse());
      expectWrong(await t.generate(body), code, `${Object.keys(WRONG[index]?.[1] ?? {}).join()} and what follows`);
    }),
  ),
  gap('GEN-3', 'a bank has its short name or its BIN', [], async (t) => {
    await decodedQr(t, t.generateBody());
    await forEachCase([findBank(t.bin)?.code ?? t.options.account.bankCode, t.bin], async (bankCode) => {
      const body = { ...t.generateBody(), bankCode };
      expectQr(await t.generate(body), `the bank ${bankCode}`);
      await expectFacts({ bin: t.bin }, await decodedQr(t, body));
    });
  }),
  gap('GEN-3', 'each bank that is taken has its own BIN', [], async (t) => {
    await t.token();
    // Each request has an order of its own: GEN-5 judges an order that is asked for again.
    const answers = await Promise.all(BANKS.map(({ code }) => t.generateWith({ bankCode: code })));
    await forEachCase([...BANKS.entries()], async ([index, { code, bin }]) => {
      const called = answers[index];
      if (called === undefined || isRefusal(called)) return;
      const is = decodedIn(called).bin;
      if (is !== bin) throw new Breach(`the BIN of ${code}: expected ${bin}, is ${is}`);
    });
  }),
  spec('GEN-5', 'the QR pays this amount to this account with this content', [], async (t) => {
    const body = t.generateBody();
    const qr = await decodedQr(t, body);
    expectSame('the BIN in the QR', t.bin, qr.bin);
    expectSame('the account in the QR', body.bankAccount, qr.account);
    expectSame('the amount in the QR', body.amount, qr.amount);
    // GEN-6 judges a prefix.
    if (qr.purpose?.endsWith(body.content) !== true) {
      throw new Mismatch(`the content in the QR: expected ${body.content}, is ${qr.purpose ?? 'none'}`);
    }
  }),
  spec('GEN-5', `the QR has the amount, ${EVERY_SIZE}`, [], (t) =>
    forEachAmount(t, async (order) => {
      expectSame('the amount in the QR', order.amount, (await decodedQr(t, t.generateBody(order))).amount);
    }),
  ),
  spec('GEN-5', 'the QR has the content byte for byte: capitals, signs and every space', [], (t) =>
    forEachCase(CONTENTS, async (content) => {
      // GEN-2 and LEN judge which contents are taken.
      const called = await t.generateWith({ content });
      if (isRefusal(called)) return;
      const { purpose } = decodedIn(called);
      if (purpose?.endsWith(content) === true) return;
      throw new Breach(`the content in the QR: expected ${JSON.stringify(content)}, is ${JSON.stringify(purpose)}`);
    }),
  ),
  spec('GEN-5', 'an order or a content that is asked for again with another amount has that amount', [], async (t) => {
    const { content, amount } = t.newOrder();
    const asked = [amount, amount + 20_000, amount + 40_000];
    await forEachCase([...asked.entries()], async ([index, it]) => {
      const orderId = index < 2 ? content : `${content}-${index}`;
      // A service may refuse an orderId that it knows.
      const called = await t.generate({ ...t.generateBody({ content, amount: it }), orderId });
      if (!isRefusal(called)) await expectFacts({ amount: it }, decodedIn(called));
    });
  }),
  spec('GEN-5', 'requests that come together have each its own QR', [], async (t) => {
    const orders = Array.from({ length: TOGETHER }, () => t.newOrder());
    await t.token();
    const answers = await Promise.all(orders.map((order) => t.generate(t.generateBody(order))));
    await forEachCase([...orders.entries()], async ([index, { amount, content }]) => {
      const called = answers[index];
      if (called === undefined || isRefusal(called)) return;
      const { amount: asked, purpose } = decodedIn(called);
      await expectFacts({ amount, orderId: content }, recordOf(called.json));
      if (asked !== amount || purpose?.endsWith(content) !== true) {
        throw new Breach(`the request of ${content} has the QR of ${purpose}, which asks for ${asked}`);
      }
    });
  }),
  spec('GEN-5', 'the QR of a second partner pays him', ['a partner without an endpoint'], async (t) => {
    const { second, secondAccount = '', secondBank = '' } = t.options;
    const body = { ...t.generateBody(), bankAccount: secondAccount, bankCode: secondBank };
    const called = await t.post(PATHS.generate, body, { as: second });
    if (isRefusal(called)) throw new PreconditionFailed(`needs a QR: the answer is ${summaryOf(called)}`);
    await expectFacts({ account: secondAccount, bin: binOf(secondBank), amount: body.amount }, decodedIn(called));
  }),
  gap('GEN-5', 'types 0 and 3 are point of initiation 12 with an amount, type 1 is 11 without one', ['a box'], (t) =>
    forEachCase(BY_TYPE, async ([type, initiation, hasAmount]) => {
      const qr = await decodedQr(t, bodiesByType(t)[type]);
      expectSame(`the point of initiation of a ${type} QR`, initiation, qr.initiation);
      const has = qr.amount !== undefined;
      if (has !== hasAmount) throw new Breach(`a ${type} QR has ${has ? 'an amount' : 'no amount'}`);
    }),
  ),
  gap('GEN-6', 'the content is not prefixed', [], async (t) => {
    const body = t.generateBody();
    expectSame('the content in the QR', body.content, (await decodedQr(t, body)).purpose);
  }),
  gap('GEN-7', 'a generated order is found by the test callback', ['sandbox', 'callbacks'], async (t) => {
    const order = t.newOrder();
    const orderId = `ID-${order.content}`;
    expectQr(await t.generate({ ...t.generateBody(order), orderId }), 'the request');
    await expectFacts({ orderId }, await callbackBody(t, await payOrder(t, order)));
  }),
];
