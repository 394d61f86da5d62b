import { BANKS } from '../../../../protocol/banks.ts';
import { Breach, Mismatch } from '../../check.ts';
import { type CheckContext, gap, type ServiceCheck, spec } from '../check-context.ts';
import { type Answer, codeOf, isRefusal } from '../client.ts';
import {
  expectCode,
  expectFacts,
  expectOk,
  expectQr,
  expectRefused,
  expectSuccess,
  forEachCase,
  unlessTaken,
} from '../expectations.ts';
import { recordOf } from '../json.ts';
import type { Order } from '../subject.ts';
import { callbackBody, firstCallback, payOrder } from './callbacks.ts';

const CONTENT_MAX = 19;
/** Payments that are sent at the same time. */
const TOGETHER = 4;
const PAID = ['sandbox', 'callbacks'] as const;

function payment(t: CheckContext, change: object = {}): Record<string, unknown> {
  return { ...t.paymentBody(), ...change };
}

/** Returns a content of exactly this many characters. */
function longContent({ subject }: CheckContext, characters: number): string {
  return subject.newOrder().content.padEnd(characters, 'X').slice(0, characters);
}

/** Returns the transaction id in an answer. Throws Mismatch unless it is SUCCESS. */
function transactionOf(called: Answer, what: string): string {
  expectOk(called, what);
  const { status, message } = recordOf(called.json);
  if (status === 'SUCCESS' && typeof message === 'string' && message !== '') return message;
  throw new Mismatch(`${what}: expected SUCCESS and a transaction id, is ${called.text}`);
}

/** Returns one wrong field per refusal, in the order of clause CBK-2. */
function wrongs(t: CheckContext): (readonly [code: string, change: Record<string, unknown>])[] {
  const other = BANKS.find(({ bin }) => bin !== t.bin)?.code;
  return [
    ['010', { bankAccount: '' }],
    ['009', { content: '' }],
    ['002', { amount: 0 }],
    ['003', { transType: 'X' }],
    ['E77', { bankAccount: 'NOSUCHACCOUNT' }],
    ['E51', { bankCode: other }],
  ];
}

const MORE_WRONG: readonly (readonly [code: string, change: Record<string, unknown>])[] = [
  ['010', { bankAccount: undefined }],
  ['010', { bankAccount: '1'.repeat(20) }],
  ['009', { content: undefined }],
  ['002', { amount: undefined }],
  ['002', { amount: 1.5 }],
  ['003', { transType: 1 }],
];

/** A service may read these (PROTOCOL.md, clause LEN-3). */
const OTHER_TYPES: readonly (readonly [code: string, change: Record<string, unknown>])[] = [
  ['009', { content: 12 }],
  ['002', { amount: '50000' }],
];

const FORBIDDEN_CONTENTS = ['Thanh toán', 'a@b', 'DH#001', 'a_b', 'x'.repeat(CONTENT_MAX + 1)];

export const paymentChecks: readonly ServiceCheck[] = [
  spec('CBK-1', 'outside the sandbox there is no simulated payment', ['outside the sandbox'], async (t) =>
    expectRefused(await outside(t), 'a test callback outside the sandbox'),
  ),
  gap('CBK-1', 'outside the sandbox it is E75', ['outside the sandbox'], async (t) =>
    expectCode(await outside(t), 'E75', 'a test callback outside the sandbox'),
  ),
  spec('CBK-2', 'content of more than 19 characters, with accents or special characters is refused', ['sandbox'], (t) =>
    forEachCase(FORBIDDEN_CONTENTS, async (content) => {
      expectRefused(await t.simulate(payment(t, { content })), `the content ${content}`);
    }),
  ),
  gap('CBK-2', 'a wrong field is refused with its code', ['sandbox'], async (t) => {
    const contents = FORBIDDEN_CONTENTS.map((content) => ['009', { content }] as const);
    await forEachCase([...wrongs(t), ...MORE_WRONG, ...contents], async ([code, change]) => {
      expectCode(await t.simulate(payment(t, change)), code, JSON.stringify(change));
    });
    await forEachCase(OTHER_TYPES, async ([code, change]) => {
      const called = await t.simulate(payment(t, change));
      unlessTaken(called, () => expectCode(called, code, JSON.stringify(change)));
    });
    await forEachCase(['[]', '"x"', 'null'], async (body) =>
      expectCode(await t.simulate(body), 'E46', `the body ${body}`),
    );
  }),
  gap('CBK-2', 'of several wrong fields the first in the order of the clause counts', ['sandbox'], (t) => {
    const list = wrongs(t);
    return forEachCase([...list.entries()], async ([index, [code, own]]) => {
      const change = Object.assign(
        {},
        ...list
          .slice(index)
          .map(([, it]) => it)
          .reverse(),
      );
      expectCode(await t.simulate(payment(t, change)), code, `${Object.keys(own).join()} and what follows`);
    });
  }),
  gap('CBK-2', 'a partner without an endpoint is E76', ['sandbox', 'a partner without an endpoint'], async (t) => {
    const { second: as, secondAccount: bankAccount, secondBank: bankCode } = t.options;
    const called = await t.simulate(payment(t, { bankAccount, bankCode }), as);
    expectCode(called, 'E76', 'a test callback for a partner without an endpoint');
  }),
  gap('CBK-2', "nobody pays into another partner's account: it is E77", ['sandbox', 'another partner'], async (t) => {
    const { second: as, secondAccount: bankAccount, secondBank: bankCode } = t.options;
    const what = "a test callback for another partner's account";
    // The partner who has an endpoint calls first, because the other may be refused without one.
    await forEachCase(['C', 'D'], async (transType) => {
      if (bankAccount !== undefined) {
        expectCode(await t.simulate(payment(t, { bankAccount, bankCode, transType })), 'E77', `${what}, ${transType}`);
      }
      expectCode(await t.simulate(payment(t, { transType }), as), 'E77', `${what}, ${transType}`);
    });
  }),
  gap('CBK-2', 'transType is C where it is left out', ['sandbox'], async (t) => {
    expectSuccess(await t.simulate(payment(t, { transType: undefined })), 'without transType');
  }),
  gap('CBK-3', 'bankCode is taken and not required', ['sandbox'], async (t) => {
    expectSuccess(await t.simulate(payment(t)), 'with bankCode');
    expectSuccess(await t.simulate(payment(t, { bankCode: undefined })), 'without bankCode');
  }),
  spec('CBK-4', 'a simulated payment is SUCCESS with a transaction id', ['sandbox'], async (t) => {
    transactionOf(await t.simulate(payment(t)), 'a credit');
    transactionOf(await t.simulate(payment(t, { transType: 'D' })), 'a debit');
  }),
  spec('CBK-4', 'the callback follows at once', ['sandbox', 'callbacks'], async (t) => {
    const arrived = await firstCallback(t, await payOrder(t, t.newOrder()));
    if (arrived === undefined) throw new Mismatch('no callback has come');
  }),
  spec('CBK-5', 'each call is a new transaction, also of one order', ['sandbox'], async (t) => {
    const order = t.newOrder();
    await t.generate(t.generateBody(order));
    const body = t.paymentBody(order);
    const ids = new Set<string>();
    for (let call = 1; call <= 3; call += 1) ids.add(transactionOf(await t.simulate(body), `call ${call}`));
    if (ids.size < 3) throw new Mismatch(`three calls have ${ids.size} transaction ids`);
  }),
  gap(
    'CBK-6',
    'the callback names the order with the same account, content, amount and kind; without one orderId and sign are empty',
    ['sandbox', 'callbacks'],
    async (t) => {
      const order = t.newOrder();
      const orderId = `ID-${order.content}`;
      expectQr(await t.generate({ ...t.generateBody(order), orderId, sign: 'S' }), 'the request');
      const cases = [
        [order, orderId, 'S'],
        [{ ...order, amount: order.amount + 1_000_000 }, '', ''],
        [t.newOrder(), '', ''],
      ] as const;
      await forEachCase(cases, async ([its, expected, sign]) => {
        await expectFacts({ orderId: expected, sign }, await callbackBody(t, await payOrder(t, its)));
      });
    },
  ),
];

/** Order ids that a service must give back as they are. */
const ORDER_IDS = [
  ['of zeros and digits', ({ amount }: Order) => `000${amount}`],
  ['of 64 characters', ({ content }: Order) => content.padEnd(64, 'x')],
] as const;

/** Orders and payments in a callback (PROTOCOL.md, clauses CBK-5, CBK-6 and SYN-2). */
export const orderChecks: readonly ServiceCheck[] = [
  gap('CBK-6', 'the callback names the whole orderId, also one of zeros or of 64 characters', PAID, (t) =>
    forEachCase(ORDER_IDS, async ([, idOf]) => {
      const order = t.newOrder();
      const orderId = idOf(order);
      const made = await t.generate({ ...t.generateBody(order), orderId });
      // LIM-3 judges whether it is taken.
      if (!isRefusal(made)) await expectFacts({ orderId }, await callbackBody(t, await payOrder(t, order)));
    }),
  ),
  gap('CBK-6', 'of two orders whose contents differ in case the one that is paid is named', PAID, async (t) => {
    const { content, amount } = t.newOrder();
    const orders = [`${content}ab`, `${content}AB`].map((it) => ({ content: it, amount }));
    for (const order of orders) expectQr(await t.generate(t.generateBody(order)), 'the request');
    await forEachCase(orders, async (order) => {
      await expectFacts({ orderId: order.content }, await callbackBody(t, await payOrder(t, order)));
    });
  }),
  gap('SYN-2', 'a callback has the content byte for byte: capitals and every space', PAID, (t) =>
    forEachCase(['aB ', ' ', '  c '], async (end) => {
      const { content, amount } = t.newOrder();
      const order = { content: ` ${content}${end}`, amount };
      await expectFacts({ content: order.content }, await callbackBody(t, await payOrder(t, order)));
    }),
  ),
  gap('CBK-5', 'payments that come together are each a transaction with a callback of its own', PAID, async (t) => {
    const orders = Array.from({ length: TOGETHER }, () => t.newOrder());
    const since = t.options.listener?.requests.length ?? 0;
    const paid = await Promise.all(
      orders.map(async (order) => ({ order, since, transactionId: await t.simulatePayment(order) })),
    );
    // SYN-2 judges what they say.
    await forEachCase(paid, async (it) => {
      const arrived = await firstCallback(t, it);
      if (arrived === undefined) throw new Breach(`the payment of ${it.order.content} has no callback`);
    });
  }),
];

export const paymentLimits: readonly ServiceCheck[] = [
  spec('LIM-3', 'content of 19 characters is taken in a test callback, of 20 refused', ['sandbox'], async (t) => {
    const taken = await t.simulate(payment(t, { content: longContent(t, CONTENT_MAX) }));
    expectSuccess(taken, `content of ${CONTENT_MAX}`);
    const refused = await t.simulate(payment(t, { content: longContent(t, CONTENT_MAX + 1) }));
    expectRefused(refused, `content of ${CONTENT_MAX + 1}`);
    if (codeOf(refused) === '') throw new Mismatch('the refusal has no code');
  }),
];

function outside(t: CheckContext): Promise<Answer> {
  const { outside: as } = t.options;
  return t.simulate(payment(t), as);
}
