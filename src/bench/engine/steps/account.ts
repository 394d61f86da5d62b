import type { Problem } from '../../scenarios/difference.ts';
import type { BoxClient } from '../clients/box.ts';
import type { CallbackView, PaymentView } from '../clients/gateway.ts';
import type { Target } from '../target.ts';
import { type Baseline, boxOf, type StepContext } from './context.ts';

/**
 * A notice to a box that reports nothing has this status (PROTOCOL.md, clause VQD-6). The box's own count of
 * announcements judges it.
 */
const SENT = 'sent';

/** Returns the state before the first step. An external target already has earlier payments. Throws PayboxError. */
export async function baseline({ target, state }: StepContext): Promise<Baseline> {
  const before = state.baseline ?? (await currentState(target));
  state.baseline ??= before;
  return state.baseline;
}

/** Tries to take the baseline early. On failure, a step that needs it tries again and reports the reason. */
export async function tryBaseline(context: StepContext): Promise<void> {
  await baseline(context).catch(() => undefined);
}

async function currentState(target: Target): Promise<Baseline> {
  if (target.isExternal !== true) return { payment: undefined, announcements: new Map() };
  const newest = await target.gateway.payments().next();
  const announcements = await Promise.all(
    target.boxes.map(async (box) => [box.terminalCode, await box.announcements()] as const),
  );
  return { payment: newest.value?.[0]?.transactionId, announcements: new Map(announcements) };
}

/** Returns why the number of payments announced since the scenario or the box started is not as expected. */
export async function announcementProblem(expected: number, context: StepContext): Promise<Problem | undefined> {
  const box = boxOf(context);
  const announced = await announcedBy(box, await baseline(context));
  if (announced === expected) return undefined;
  if (announced === undefined) return `${box.terminalCode}: announced: the box does not count its payments`;
  return {
    reason: `${box.terminalCode}: announced: expected ${expected}, it has announced ${announced}`,
    expected: `${expected} payments announced`,
    actual: `${announced}`,
  };
}

/**
 * Returns why a payment is not settled. Each box that was notified must report every payment since the scenario began
 * once, and the partner must accept it once. With `mayBeNone`, no payment is needed.
 */
export async function settlementProblem(context: StepContext, mayBeNone: boolean): Promise<string | undefined> {
  const { target, state } = context;
  const before = await baseline(context);
  const everyPayment = await paymentsSince(before.payment, target);
  const known = new Set(everyPayment.map(({ transactionId }) => transactionId));
  const lost = state.paid?.find((it) => !known.has(it));
  if (lost !== undefined) return `settled: payment ${lost} was accepted by the gateway, which does not list it`;
  const payments = everyPayment.filter((it) => isOf(it, target));
  if (payments.length === 0 && !mayBeNone) {
    return 'settled: nothing was paid, so there is nothing to judge; `announced: 0` beside it says that none is meant';
  }
  const callbacks = Map.groupBy(await callbacksFor(payments, target), ({ transactionId }) => transactionId);
  const received =
    target.partnerServer && Map.groupBy(target.partnerServer.received, ({ transactionId }) => transactionId);
  for (const payment of payments) {
    const { transactionId } = payment;
    const problem =
      reportProblem(payment, target) ??
      callbackProblem(callbacks.get(transactionId) ?? [], received && (received.get(transactionId)?.length ?? 0));
    if (problem !== undefined) return `settled: payment ${payment.transactionId} ${problem}`;
  }
  for (const box of target.boxes) {
    const told = payments.filter(({ boxes }) => boxes.some((it) => it.terminalCode === box.terminalCode)).length;
    const announced = await announcedBy(box, before);
    // A box that may have restarted counts from its restart, so a smaller number is allowed too.
    const isSinceBegan = target.isExternal !== true && state.turnedOff?.has(box.terminalCode) !== true;
    if (announced !== undefined && (announced > told || (isSinceBegan && announced < told))) {
      return `settled: ${box.terminalCode} has announced ${announced} payments, but the gateway sent it ${told}`;
    }
  }
  return undefined;
}

function reportProblem(payment: PaymentView, { boxes }: Target): string | undefined {
  const unreported = payment.boxes.filter(
    (it) =>
      it.reportedAt === null &&
      it.unconfirmed !== SENT &&
      boxes.some(({ terminalCode }) => terminalCode === it.terminalCode),
  );
  const names = unreported.map(({ terminalCode }) => terminalCode).join(', ');
  return names === '' ? undefined : `is not reported by ${names}`;
}

/**
 * Returns why the partner has not accepted each payment once. `received` has the callbacks of the partner's server;
 * undefined when the bench does not run it.
 */
function callbackProblem(
  [callback, ...more]: readonly CallbackView[],
  received: number | undefined,
): string | undefined {
  if (callback === undefined) return 'has no callback';
  if (more.length > 0) return `has ${more.length + 1} callbacks`;
  if (callback.status !== 'delivered') return `has a callback that is ${callback.status}`;
  const taken = callback.attempts.filter(({ response }) => response !== null && isTaken(response.status)).length;
  if (taken !== 1) return `was accepted by the partner ${taken} times`;
  if (received === undefined || received === callback.attempts.length) return undefined;
  return `reached the partner ${received} times in ${callback.attempts.length} attempts`;
}

function isTaken(status: number): boolean {
  return status >= 200 && status < 300;
}

/** Returns whether the payment's notice went to a box of the target, or to no box at all. */
function isOf(payment: PaymentView, { boxes }: Target): boolean {
  const codes = new Set(boxes.map(({ terminalCode }) => terminalCode));
  return payment.boxes.length === 0 || payment.boxes.some(({ terminalCode }) => codes.has(terminalCode));
}

/** Returns the payments after this one, newest first. */
async function paymentsSince(transactionId: string | undefined, { gateway }: Target): Promise<PaymentView[]> {
  const since: PaymentView[] = [];
  for await (const rows of gateway.payments()) {
    const end = rows.findIndex((it) => it.transactionId === transactionId);
    since.push(...(end < 0 ? rows : rows.slice(0, end)));
    if (end >= 0) break;
  }
  return since;
}

async function callbacksFor(payments: readonly PaymentView[], { gateway }: Target): Promise<CallbackView[]> {
  const ids = new Set(payments.map(({ transactionId }) => transactionId));
  const found = new Set<string>();
  const callbacks: CallbackView[] = [];
  for await (const rows of gateway.callbacks()) {
    const own = rows.filter(({ transactionId }) => ids.has(transactionId));
    for (const { transactionId } of own) found.add(transactionId);
    callbacks.push(...own);
    if (found.size === ids.size) break;
  }
  return callbacks;
}

async function announcedBy(box: BoxClient, { announcements }: Baseline): Promise<number | undefined> {
  const announced = await box.announcements();
  const before = announcements.get(box.terminalCode) ?? 0;
  return announced === undefined || announced < before ? announced : announced - before;
}
