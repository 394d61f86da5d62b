import { parseJson } from '../../../../lib/http-client.ts';
import { PATHS, transactionSync } from '../../../../protocol/http-api.ts';
import { webhookProblem } from '../../../../protocol/webhook.ts';
import { watchWhileRight } from '../../../engine/test-time.ts';
import { Breach, Mismatch, PreconditionFailed } from '../../check.ts';
import {
  basicOf,
  type CallbackAnswer,
  type CallbackListener,
  ELSEWHERE_PATH,
  type ReceivedRequest,
} from '../callback-listener.ts';
import { type CheckContext, gap, type ServiceCheck, spec } from '../check-context.ts';
import { expectFacts, expectFields, expectOk, forEachCase } from '../expectations.ts';
import { recordOf } from '../json.ts';
import type { Order } from '../subject.ts';

const CALLBACK_TIMEOUT_MS = 10_000;
/** Longer than the first wait before a retry. */
const QUIET_MS = 4_000;
/** Content, amount and id that a callback must share with the payment that it is about. */
const MARKS_MIN = 2;

/** Difference allowed between the service's clock and ours. */
const CLOCKS_APART_MS = 5 * 60_000;
/** A larger difference is another unit than milliseconds. */
const UNITS_APART_MS = 24 * 3_600_000;

export function listenerOf({ options }: CheckContext): CallbackListener {
  const { listener } = options;
  if (listener === undefined) throw new PreconditionFailed('needs callbacks');
  return listener;
}

/** A simulated payment, for which callbacks should come. */
export interface SimulatedPayment {
  order: Order;
  transactionId: string;
  /** Number of requests to the partner before it. */
  since: number;
}

/** Simulates a payment; `change` replaces fields of the request. Throws PreconditionFailed for a refusal. */
export async function payOrder(t: CheckContext, order: Order, change: object = {}): Promise<SimulatedPayment> {
  const since = listenerOf(t).requests.length;
  return { order, transactionId: await t.simulatePayment(order, change), since };
}

/**
 * Returns the callbacks for a payment so far: those with two of its content, amount and id, because one of these may be
 * wrong.
 */
export function about(
  t: CheckContext,
  { order: { content, amount }, transactionId, since }: SimulatedPayment,
): ReceivedRequest[] {
  // An empty id would be in every callback. CBK-4 judges it.
  const marks = [content, `:${amount},`, transactionId].filter((mark) => mark !== '');
  const has = (body: string) => marks.filter((mark) => body.replaceAll(' ', '').includes(mark)).length >= MARKS_MIN;
  return listenerOf(t)
    .requests.slice(since)
    .filter(({ path, body }) => path !== PATHS.token && has(body));
}

/** Waits for the `nth` attempt. Returns all attempts so far. */
async function attempts(t: CheckContext, payment: SimulatedPayment, nth: number): Promise<ReceivedRequest[]> {
  await t.run.isSoon(CALLBACK_TIMEOUT_MS, () => about(t, payment).length >= nth);
  return about(t, payment);
}

/** Returns the first callback for a payment; undefined if none comes. */
export async function firstCallback(t: CheckContext, payment: SimulatedPayment): Promise<ReceivedRequest | undefined> {
  const [arrived] = await attempts(t, payment, 1);
  if (arrived !== undefined) keep(t, arrived);
  return arrived;
}

/** Returns the body of the first callback. Throws PreconditionFailed if none comes. */
export async function callbackBody(
  t: CheckContext,
  payment: SimulatedPayment,
): Promise<Readonly<Record<string, unknown>>> {
  const arrived = await firstCallback(t, payment);
  if (arrived === undefined) throw new PreconditionFailed('needs a callback, and none came: CBK-4 judges that');
  return recordOf(parseJson(arrived.body));
}

/** Keeps a callback as evidence. */
export function keep({ run, subject }: CheckContext, { method, path, headers, body }: ReceivedRequest): void {
  run.evidence.add('callback', `${method} ${path}`, {
    detail: subject.redactor.value({ method, path, headers, body }),
  });
}

/** Pays a new order while the partner gives this answer. */
export async function answered(
  t: CheckContext,
  how: CallbackAnswer,
  work: (payment: SimulatedPayment, first: ReceivedRequest) => Promise<void>,
): Promise<void> {
  const listener = listenerOf(t);
  listener.answerWith(how);
  try {
    const payment = await payOrder(t, t.newOrder());
    const first = await firstCallback(t, payment);
    if (first === undefined) throw new PreconditionFailed('needs a callback, and none came: CBK-4 judges that');
    await work(payment, first);
  } finally {
    // Later attempts succeed.
    listener.answerWith('ok');
  }
}

export async function expectOnce(t: CheckContext, how: CallbackAnswer): Promise<void> {
  await answered(t, how, async (payment) => {
    const look = async () => (about(t, payment).length > 1 ? 'it came again' : undefined);
    const problem = await watchWhileRight(t.time, QUIET_MS, look, t.run.signal);
    if (problem !== undefined) throw new Mismatch(`a callback that was answered ${how} is sent again`);
  });
}

export const callbackChecks: readonly ServiceCheck[] = [
  spec('SYN-1', "a callback is a POST of JSON to the partner's address, exactly", ['callbacks'], (t) =>
    answered(t, 'ok', async (_payment, { method, path, headers, body }) => {
      const type = headers['content-type'] ?? 'none';
      const expected = new URL(listenerOf(t).url).pathname;
      if (method !== 'POST' || path !== expected) throw new Mismatch(`expected POST ${expected}, is ${method} ${path}`);
      if (!/^application\/json\b/i.test(type))
        throw new Mismatch(`Content-Type: expected application/json, is ${type}`);
      if (Object.keys(recordOf(parseJson(body))).length === 0) throw new Mismatch('the body is no JSON object');
    }),
  ),
  gap(
    'SYN-1',
    'a callback is authorized as agreed',
    ['callbacks', 'the authorization of callbacks'],
    judgeAuthorization,
  ),
  gap('SYN-2', 'a callback says in thirteen fields what was paid', ['callbacks'], (t) =>
    answered(t, 'ok', async ({ order, transactionId }, first) => {
      const said = parseJson(first.body);
      const { amount, content } = order;
      const { bankAccount: bankaccount } = t.options.account;
      const id = transactionId === '' ? {} : { transactionid: transactionId };
      await expectFacts({ ...id, amount, content, bankaccount, transType: 'C' }, said);
      const { error } = transactionSync.strict().safeParse(said);
      if (error === undefined) return;
      throw new Mismatch(error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`).join('; '));
    }),
  ),
  gap('SYN-2', 'a callback has the same bytes at every attempt', ['callbacks'], (t) =>
    answered(t, 500, async (payment) => {
      const [first, second] = await attempts(t, payment, 2);
      if (second === undefined) throw new PreconditionFailed('needs a second attempt: SYN-4 judges that');
      if (first?.body !== second.body) throw new Breach('the second attempt has other bytes');
    }),
  ),
  spec('SYN-3', 'a callback that was answered 200 is not sent again', ['callbacks'], (t) => expectOnce(t, 'ok')),
  gap(
    'SYN-3',
    'a callback that was answered another 2xx, or 200 in another shape, is not sent again',
    ['callbacks'],
    async (t) => {
      await expectOnce(t, 204);
      await expectOnce(t, 'wrong-shape');
    },
  ),
  gap('SYN-6', 'a redirect is not followed', ['callbacks'], (t) =>
    answered(t, 'redirect', async () => {
      const { requests: arrived } = listenerOf(t);
      const look = async () => (arrived.some(({ path }) => path === ELSEWHERE_PATH) ? 'it was followed' : undefined);
      const problem = await watchWhileRight(t.time, QUIET_MS, look, t.run.signal);
      if (problem !== undefined) throw new Breach('a redirect is followed, with the authorization of the partner');
    }),
  ),
  gap(
    'SYN-8',
    'each attempt is signed by Standard Webhooks, under the same webhook-id',
    ['callbacks', 'signed callbacks'],
    (t) =>
      answered(t, 500, async (payment, first) => {
        const { signingSecret = '' } = t.options;
        const all = await attempts(t, payment, 2);
        await forEachCase(all, async ({ headers, body }) => {
          const problem = webhookProblem(signingSecret, headers, body, t.time.clock.wallMs());
          if (problem !== undefined) throw new Breach(problem);
          if (headers['webhook-id'] !== first.headers['webhook-id']) throw new Mismatch('webhook-id has changed');
        });
      }),
  ),
  gap(
    'SYN-2',
    'a callback says when it was paid, in milliseconds, and has a reference number of its own',
    ['callbacks'],
    async (t) => {
      const { clock } = t.time;
      const numbers = new Set<unknown>();
      for (const order of [t.newOrder(), t.newOrder()]) {
        const { transactiontime, referencenumber } = await callbackBody(t, await payOrder(t, order));
        const apartMs = Math.abs(Number(transactiontime) - clock.wallMs());
        if (!(apartMs < UNITS_APART_MS)) {
          throw new Mismatch(`transactiontime: expected the time in milliseconds, is ${transactiontime}`);
        }
        if (apartMs > CLOCKS_APART_MS) {
          const what = `transactiontime: ${transactiontime} is ${Math.round(apartMs / 60_000)} minutes from the payment`;
          throw new Breach(`${what}; are the clocks of both machines right?`);
        }
        numbers.add(referencenumber);
      }
      if (numbers.size < 2) throw new Breach(`referencenumber: two payments have ${[...numbers].join()}`);
    },
  ),
  gap('SYN-2', 'the callback of a debit says so', ['callbacks'], async (t) => {
    const said = await callbackBody(t, await payOrder(t, t.newOrder(), { transType: 'D' }));
    await expectFacts({ transType: 'D' }, said);
  }),
  gap(
    'SYN-2',
    'a callback names the box and the service that its order was made for',
    ['callbacks', 'a box'],
    async (t) => {
      const order = t.newOrder();
      const terminalCode = t.options.box?.terminalCode ?? '';
      const names = { terminalCode, subTerminalCode: 'SUB1', serviceCode: 'S1', urlLink: 'https://shop.example.com/1' };
      expectOk(await t.generate({ ...t.generateBody(order), ...names }), 'the request');
      const said = await callbackBody(t, await payOrder(t, order));
      await expectFields(names, said);
    },
  ),
];

async function judgeAuthorization(t: CheckContext): Promise<void> {
  const { callbackAuth } = t.options;
  const { requests: arrived } = listenerOf(t);
  await answered(t, 500, async (payment) => {
    const all = await attempts(t, payment, 2);
    await forEachCase(all, async (attempt) => {
      const before = arrived[arrived.indexOf(attempt) - 1];
      const { authorization } = attempt.headers;
      if (callbackAuth?.kind === 'none' && authorization !== undefined) throw new Mismatch('it has an authorization');
      if (callbackAuth?.kind === 'bearer' && authorization !== `Bearer ${callbackAuth.token}`) {
        throw new Breach('it has not the fixed bearer');
      }
      if (callbackAuth?.kind !== 'token') return;
      if (!/^Bearer bench-\d+$/.test(authorization ?? ''))
        throw new Breach('the attempt has not the token that was given');
      if (before?.path !== PATHS.token) throw new Mismatch('no token was fetched before the attempt');
      if (before.headers.authorization !== basicOf(callbackAuth))
        throw new Breach('the token request has other Basic credentials');
      if (before.body !== '{}') throw new Mismatch(`the body of the token request: expected {}, is ${before.body}`);
    });
  });
}
