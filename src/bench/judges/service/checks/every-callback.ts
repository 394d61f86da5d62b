import { parseJson } from '../../../../lib/http-client.ts';
import { PATHS } from '../../../../protocol/http-api.ts';
import { watchWhileRight } from '../../../engine/test-time.ts';
import { Breach, PreconditionFailed } from '../../check.ts';
import type { CallbackAnswer, ReceivedRequest } from '../callback-listener.ts';
import { type CheckContext, gap, type ServiceCheck, spec } from '../check-context.ts';
import { isRefusal } from '../client.ts';
import { expectFacts, wrongFacts } from '../expectations.ts';
import { recordOf } from '../json.ts';
import type { Order, SentRequest } from '../subject.ts';
import { callbackBody, keep, payOrder } from './callbacks.ts';

/** How long the end of a run waits for callbacks that should not come. */
const SILENCE_MS = 3_000;
const SLOW_SILENCE_MS = 75_000;
/** A callback that has not come by then is lost. */
const LOST_MS = 10_000;
/** Callbacks that a reason names. */
const NAMED_MAX = 3;

/** A test callback of the judge that the service may have taken. */
interface AskedPayment {
  facts: { amount: number; content: string; bankaccount: string; transType: string };
  /** In the answer; undefined if that has none. */
  transactionId: string | undefined;
  /** Place of the first callback that was answered 200 with the documented reply. */
  takenAt: number;
  /** Place of the first one that was answered 2xx: a service may send that again (SYN-3), but not as another payment. */
  heardAt: number;
}

interface Callback {
  /** Its place among all requests to the partner. */
  at: number;
  request: ReceivedRequest;
  said: Readonly<Record<string, unknown>>;
}

/** A callback that is wrong, in words. */
interface WrongCallback {
  request: ReceivedRequest;
  why: string;
}

/** Run at the end: they judge the callbacks of all checks before them, whenever these came. */
export const everyCallbackChecks: readonly ServiceCheck[] = [
  gap('SYN-2', 'every callback of the run says what was paid', ['callbacks'], async (t) =>
    expectNone(t, judgedCallbacks(t).untrue, 'say what was not paid'),
  ),
  spec('CBK-4', 'every simulated payment of the run had its callback', ['callbacks'], async (t) => {
    if (callbacksOf(t).length > 0) await t.run.isSoon(LOST_MS, () => lostPayments(t).length === 0);
    const lost = lostPayments(t).map(({ facts }) => `${JSON.stringify(facts.content)} of ${facts.amount}`);
    if (lost.length === 0) return;
    throw new Breach(`${lost.length} payments had no callback: ${lost.slice(0, NAMED_MAX).join('; ')}`);
  }),
  spec('GEN-7', 'the oldest order of the run is still found when it is paid', ['sandbox', 'callbacks'], async (t) => {
    const order = oldestOrder(t.subject.sent);
    if (order === undefined) throw new PreconditionFailed('needs an order that is not paid yet');
    const { orderId, ...its } = order;
    await expectFacts({ orderId }, await callbackBody(t, await payOrder(t, its)));
  }),
  spec('SYN-3', 'no callback of the run came unasked, or again after it was answered 200', ['callbacks'], async (t) => {
    const { requests = [] } = t.options.listener ?? {};
    let judged = -1;
    const look = async () => {
      if (judged === requests.length) return undefined;
      judged = requests.length;
      return judgedCallbacks(t).unasked[0]?.why;
    };
    const forMs = t.options.slow ? SLOW_SILENCE_MS : SILENCE_MS;
    if ((await look()) === undefined) await watchWhileRight(t.time, forMs, look, t.run.signal);
    expectNone(t, judgedCallbacks(t).unasked, 'came unasked, or again after they were answered 200');
  }),
];

/** Returns the payments that the service took and did not report to the partner. */
function lostPayments(t: CheckContext): AskedPayment[] {
  const all = callbacksOf(t);
  const ids = new Set(all.map(({ said }) => said.transactionid));
  const { bankAccount } = t.options.account;
  const payments = askedPayments(t.subject.sent).filter(
    (it) => it.transactionId !== undefined && it.facts.bankaccount === bankAccount,
  );
  // SYN-2 judges callbacks with another id or content.
  const isHeard = ({ facts: { content } }: AskedPayment) => {
    const heard = new Set(all.filter(({ said }) => said.content === content).map(({ said }) => said.transactionid));
    return heard.size >= payments.filter(({ facts }) => facts.content === content).length;
  };
  return payments.filter((it) => !ids.has(it.transactionId) && !isHeard(it));
}

/** Returns the oldest generated order whose content nobody used again, and that a test callback can pay. */
function oldestOrder(sent: readonly SentRequest[]): (Order & { orderId: string }) | undefined {
  const timesOf = new Map<unknown, number>();
  for (const { fields } of sent) timesOf.set(fields.content, (timesOf.get(fields.content) ?? 0) + 1);
  const { fields: { content, amount, orderId } = {} } =
    sent.find(
      ({ path, fields, answer }) =>
        path.endsWith(PATHS.generate) &&
        answer?.status === 200 &&
        !isRefusal(answer) &&
        timesOf.get(fields.content) === 1 &&
        fields.orderId === fields.content &&
        fields.transType === 'C',
    ) ?? {};
  if (typeof content !== 'string' || typeof orderId !== 'string') return undefined;
  return { content, orderId, amount: Number(amount) };
}

/** Throws a Breach that names the first of them. */
function expectNone(t: CheckContext, wrong: readonly WrongCallback[], what: string): void {
  if (wrong.length === 0) return;
  const named = wrong.slice(0, NAMED_MAX);
  for (const { request } of named) keep(t, request);
  const more = wrong.length > named.length ? ['…'] : [];
  throw new Breach(`${wrong.length} callbacks ${what}: ${[...named.map(({ why }) => why), ...more].join('; ')}`);
}

/** Compares each callback so far with the payment that it is about. Throws PreconditionFailed without callbacks. */
function judgedCallbacks(t: CheckContext): { untrue: WrongCallback[]; unasked: WrongCallback[] } {
  const callbacks = callbacksOf(t);
  if (callbacks.length === 0) throw new PreconditionFailed('needs callbacks, and none came: CBK-4 judges that');
  const payments = askedPayments(t.subject.sent);
  const ids = new Set<unknown>(payments.map(({ transactionId }) => transactionId ?? {}));
  const untrue: WrongCallback[] = [];
  const unasked: WrongCallback[] = [];
  const paymentIds = new Map<unknown, unknown>();
  // Callbacks with a known transactionid come first: only what they leave can have another one.
  const [others = [], known = []] = [false, true].map((isKnown) =>
    callbacks.filter(({ said }) => ids.has(said.transactionid) === isKnown),
  );
  for (const { at, request, said } of [...known, ...others]) {
    const name = `content ${JSON.stringify(said.content)}, amount ${JSON.stringify(said.amount)}`;
    const isKnown = ids.has(said.transactionid);
    const payment = paymentOf(payments, said, isKnown);
    if (payment === undefined) {
      unasked.push({ request, why: `${name}: nobody has paid that` });
      continue;
    }
    if ((isKnown ? payment.takenAt : payment.heardAt) < at) {
      unasked.push({
        request,
        why: `${name}: it was answered 200 before, now with transactionid ${said.transactionid}`,
      });
      continue;
    }
    const wrong = untrueIn(said, payment, t.subject.sent);
    const { referencenumber } = said;
    const named = paymentIds.get(referencenumber) ?? said.transactionid;
    paymentIds.set(referencenumber, named);
    if (referencenumber !== undefined && named !== said.transactionid) {
      wrong.push(`referencenumber ${referencenumber} is that of another payment`);
    }
    if (wrong.length > 0) untrue.push({ request, why: `${name}: ${wrong.join(', ')}` });
    if (request.answer === 'ok') payment.takenAt = Math.min(payment.takenAt, at);
    if (isSuccess(request.answer)) payment.heardAt = Math.min(payment.heardAt, at);
  }
  return { untrue, unasked };
}

function isSuccess(answer: CallbackAnswer | undefined): boolean {
  return answer === 'ok' || answer === 'wrong-shape' || (Number(answer) >= 200 && Number(answer) < 300);
}

/**
 * Returns the callbacks so far, without requests of strangers, and without callbacks of an earlier run that are sent
 * again.
 */
function callbacksOf({ subject }: CheckContext): Callback[] {
  const { listener, tag } = subject.options;
  const isEarlier = ({ said }: Callback) =>
    !String(said.content).trimStart().startsWith(tag) && Number(said.transactiontime) < subject.beganMs;
  return (listener?.requests ?? [])
    .map((request, at) => ({ at, request, said: recordOf(parseJson(request.body)) }))
    .filter((it) => it.request.path !== PATHS.token && 'amount' in it.said && !isEarlier(it));
}

function askedPayments(sent: readonly SentRequest[]): AskedPayment[] {
  // A service that answers nothing, or 500, may have taken it.
  const isRefused = ({ answer }: SentRequest) => answer !== undefined && answer.status < 500 && isRefusal(answer);
  return sent
    .filter((it) => it.path.endsWith(PATHS.testCallback) && !isRefused(it))
    .map(({ fields, answer }) => {
      const { amount, content, bankAccount, transType = 'C' } = fields;
      const [its, account, kind] = [content, bankAccount, transType].map(String) as [string, string, string];
      const { message } = recordOf(answer?.status === 200 ? answer.json : undefined);
      return {
        facts: { amount: Number(amount), content: its, bankaccount: account, transType: kind },
        transactionId: typeof message === 'string' ? message : undefined,
        takenAt: Number.POSITIVE_INFINITY,
        heardAt: Number.POSITIVE_INFINITY,
      };
    });
}

/** Returns the payment that a callback is about: by its transactionid if that is known, otherwise by its content. */
function paymentOf(
  payments: readonly AskedPayment[],
  said: Callback['said'],
  isKnown: boolean,
): AskedPayment | undefined {
  const mine = payments.filter((it) =>
    isKnown ? it.transactionId === said.transactionid : it.facts.content === said.content,
  );
  const isOpen = ({ takenAt }: AskedPayment) => takenAt === Number.POSITIVE_INFINITY;
  const alike = mine.filter(({ facts }) => wrongFacts(facts, said).length === 0);
  return alike.find(isOpen) ?? alike[0] ?? mine.find(isOpen) ?? mine[0];
}

/** Returns everything in a callback that is not true, in words. */
function untrueIn(said: Callback['said'], { facts, transactionId }: AskedPayment, sent: readonly SentRequest[]) {
  // CBK-4 judges an empty id.
  const id = transactionId === undefined || transactionId === '' ? {} : { transactionid: transactionId };
  const wrong = wrongFacts({ ...facts, ...id }, said);
  const { orderId = '' } = said;
  // CBK-6 and GEN-7 judge whether an order is found, and which of several equal ones.
  const isOrder = orderId === '' || orderIdsOf(sent, facts).has(String(orderId));
  return isOrder ? wrong : [...wrong, `orderId: ${JSON.stringify(orderId)} is no order of that content and amount`];
}

function orderIdsOf(sent: readonly SentRequest[], { amount, content }: AskedPayment['facts']): Set<string> {
  const isOrder = ({ path, fields }: SentRequest) =>
    (path.endsWith(PATHS.generate) || path.endsWith(PATHS.sendQr)) &&
    String(fields.content) === content &&
    Number(fields.amount) === amount;
  return new Set(
    sent.filter(isOrder).flatMap(({ fields, answer }) => [fields.orderId, recordOf(answer?.json).orderId].map(String)),
  );
}
