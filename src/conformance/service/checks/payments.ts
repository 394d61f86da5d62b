import { BANKS } from '../../../protocol/banks.ts';
import { PATHS } from '../../../protocol/http-api.ts';
import { Mismatch } from '../../check.ts';
import { type Answer, codeOf } from '../client.ts';
import { recordOf } from '../json.ts';
import {
  accountBin,
  type Body,
  expectCode,
  expectOk,
  expectQr,
  expectRefused,
  forEachCase,
  generateBody,
  paymentBody,
  post,
} from '../requests.ts';
import { gap, type ServiceCheck, type ServiceRun, spec } from '../subject.ts';
import { callbackBody, firstCallback, payOrder } from './callbacks.ts';
import { generate } from './generate.ts';

const CONTENT_MAX = 19;

function payment(run: ServiceRun, change: object = {}): Record<string, unknown> {
  return { ...paymentBody(run, run.subject.newOrder()), ...change };
}

function simulate(run: ServiceRun, body: Body): Promise<Answer> {
  return post(run, PATHS.testCallback, body);
}

/** A content of exactly this many characters. */
function longContent({ subject }: ServiceRun, characters: number): string {
  return subject.newOrder().content.padEnd(characters, 'X').slice(0, characters);
}

/** The transaction id in an answer. Throws Mismatch unless it is SUCCESS. */
function transactionOf(called: Answer, what: string): string {
  expectOk(called, what);
  const { status, message } = recordOf(called.json);
  if (status === 'SUCCESS' && typeof message === 'string' && message !== '') return message;
  throw new Mismatch(`${what}: expected SUCCESS and a transaction id, is ${called.text}`);
}

/** One wrong field per refusal, in the order of clause CBK-2. */
function wrongs(run: ServiceRun): (readonly [code: string, change: Record<string, unknown>])[] {
  const other = BANKS.find(({ bin }) => bin !== accountBin(run.subject))?.code;
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
  ['009', { content: 12 }],
  ['002', { amount: undefined }],
  ['002', { amount: '50000' }],
  ['002', { amount: 1.5 }],
  ['003', { transType: 1 }],
];

const FORBIDDEN_CONTENTS = ['Thanh toán', 'a@b', 'DH#001', 'a_b', 'x'.repeat(CONTENT_MAX + 1)];

export const paymentChecks: readonly ServiceCheck[] = [
  spec('CBK-1', 'outside the sandbox there is no simulated payment', ['outside the sandbox'], async (run) =>
    expectRefused(await outside(run), 'a test callback outside the sandbox'),
  ),
  gap('CBK-1', 'outside the sandbox it is E75', ['outside the sandbox'], async (run) =>
    expectCode(await outside(run), 'E75', 'a test callback outside the sandbox'),
  ),
  spec(
    'CBK-2',
    'content of more than 19 characters, with accents or special characters is refused',
    ['sandbox'],
    (run) =>
      forEachCase(FORBIDDEN_CONTENTS, async (content) => {
        expectRefused(await simulate(run, payment(run, { content })), `the content ${content}`);
      }),
  ),
  gap('CBK-2', 'a wrong field is refused with its code', ['sandbox'], async (run) => {
    const contents = FORBIDDEN_CONTENTS.map((content) => ['009', { content }] as const);
    await forEachCase([...wrongs(run), ...MORE_WRONG, ...contents], async ([code, change]) => {
      expectCode(await simulate(run, payment(run, change)), code, JSON.stringify(change));
    });
    await forEachCase(['[]', '"x"', 'null'], async (body) =>
      expectCode(await simulate(run, body), 'E46', `the body ${body}`),
    );
  }),
  gap('CBK-2', 'of several wrong fields the first in the order of the clause counts', ['sandbox'], (run) => {
    const list = wrongs(run);
    return forEachCase([...list.entries()], async ([index, [code, own]]) => {
      const change = Object.assign(
        {},
        ...list
          .slice(index)
          .map(([, it]) => it)
          .reverse(),
      );
      expectCode(await simulate(run, payment(run, change)), code, `${Object.keys(own).join()} and what follows`);
    });
  }),
  gap('CBK-2', 'a partner without an endpoint is E76', ['sandbox', 'a partner without an endpoint'], async (run) => {
    const { second: as, secondAccount: bankAccount } = run.subject.options;
    const called = await post(run, PATHS.testCallback, payment(run, { bankAccount }), { as });
    expectCode(called, 'E76', 'a test callback for a partner without an endpoint');
  }),
  gap('CBK-2', "nobody pays into another partner's account: it is E77", ['sandbox', 'another partner'], async (run) => {
    const { second: as } = run.subject.options;
    const called = await post(run, PATHS.testCallback, payment(run), { as });
    expectCode(called, 'E77', "a test callback for another partner's account");
  }),
  gap('CBK-2', 'transType is C where it is left out', ['sandbox'], async (run) => {
    transactionOf(await simulate(run, payment(run, { transType: undefined })), 'without transType');
  }),
  gap('CBK-3', 'bankCode is taken and not required', ['sandbox'], async (run) => {
    const { bankCode } = run.subject.options.account;
    transactionOf(await simulate(run, payment(run, { bankCode })), 'with bankCode');
    transactionOf(await simulate(run, payment(run)), 'without bankCode');
  }),
  spec('CBK-4', 'a simulated payment is SUCCESS with a transaction id', ['sandbox'], async (run) => {
    transactionOf(await simulate(run, payment(run)), 'a credit');
    transactionOf(await simulate(run, payment(run, { transType: 'D' })), 'a debit');
  }),
  spec('CBK-4', 'the callback follows at once', ['sandbox', 'callbacks'], async (run) => {
    const arrived = await firstCallback(run, await payOrder(run, run.subject.newOrder()));
    if (arrived === undefined) throw new Mismatch('no callback has come');
  }),
  spec('CBK-5', 'each call is a new transaction', ['sandbox'], async (run) => {
    const body = payment(run);
    const ids = new Set<string>();
    for (let call = 1; call <= 3; call += 1) ids.add(transactionOf(await simulate(run, body), `call ${call}`));
    if (ids.size < 3) throw new Mismatch(`three calls have ${ids.size} transaction ids`);
  }),
  gap(
    'CBK-6',
    'the callback names the order with the same account, content, amount and kind; without one orderId and sign are empty',
    ['sandbox', 'callbacks'],
    async (run) => {
      const order = run.subject.newOrder();
      const orderId = `ID-${order.content}`;
      expectQr(await generate(run, { ...generateBody(run, order), orderId, sign: 'S' }), 'the request');
      const cases = [
        [order, orderId, 'S'],
        [{ ...order, amount: order.amount + 1_000_000 }, '', ''],
        [run.subject.newOrder(), '', ''],
      ] as const;
      await forEachCase(cases, async ([its, expected, sign]) => {
        const said = await callbackBody(run, await payOrder(run, its));
        if (said.orderId === expected && said.sign === sign) return;
        const is = `${String(said.orderId)} and ${String(said.sign)}`;
        throw new Mismatch(`orderId and sign of ${its.content}: expected "${expected}" and "${sign}", are ${is}`);
      });
    },
  ),
];

export const paymentLimits: readonly ServiceCheck[] = [
  spec('LIM-3', 'content of 19 characters is taken in a test callback, of 20 refused', ['sandbox'], async (run) => {
    const taken = await simulate(run, payment(run, { content: longContent(run, CONTENT_MAX) }));
    transactionOf(taken, `content of ${CONTENT_MAX}`);
    const refused = await simulate(run, payment(run, { content: longContent(run, CONTENT_MAX + 1) }));
    expectRefused(refused, `content of ${CONTENT_MAX + 1}`);
    if (codeOf(refused) === '') throw new Mismatch('the refusal has no code');
  }),
];

function outside(run: ServiceRun): Promise<Answer> {
  const { outside: as } = run.subject.options;
  return post(run, PATHS.testCallback, payment(run), { as });
}
