import type { CallbackView, GatewayClient } from '../clients/gateway.ts';
import type { Expectation } from '../vocabulary/expect.ts';
import { difference, shown } from '../vocabulary/variables.ts';
import { boxOf, type StepContext } from './context.ts';

/** How the gateway does not know what was expected from the box; undefined when it does. */
export async function reportProblem(
  report: NonNullable<Expectation['report']>,
  context: StepContext,
): Promise<string | undefined> {
  const { gateway } = context.target;
  if ('order' in report) {
    const order = await found(gateway.orders(), (it) => [it.id, it.orderId].includes(String(report.order)));
    if (order === undefined) return `report: the gateway knows no order ${report.order}`;
    return difference(order, { status: report.status }, `report: order ${report.order}`);
  }
  const { terminalCode } = boxOf(context);
  const payment = await found(gateway.payments(), (it) => it.transactionId === String(report.payment));
  if (payment === undefined) return `report: the gateway knows no payment ${report.payment}`;
  const told = payment.boxes.find((it) => it.terminalCode === terminalCode);
  if (told === undefined) return `report: ${terminalCode} is not told of payment ${report.payment}`;
  return told.reportedAt === null ? `report: ${terminalCode} has not reported payment ${report.payment}` : undefined;
}

/** The newest row that is meant, on whichever page. */
async function found<T>(pages: AsyncIterable<T[]>, isMeant: (row: T) => boolean): Promise<T | undefined> {
  for await (const rows of pages) {
    const row = rows.find(isMeant);
    if (row !== undefined) return row;
  }
  return undefined;
}

/** All of a payment that stand on the page with the newest of them: they were made at one time. */
async function callbacksOf(transactionId: string, gateway: GatewayClient): Promise<CallbackView[]> {
  for await (const rows of gateway.callbacks()) {
    const own = rows.filter((it) => it.transactionId === transactionId);
    if (own.length > 0) return own;
  }
  return [];
}

/** How the partner was not called as expected, by what the gateway tells and what the partner's server received. */
export async function callbackProblem(
  expected: NonNullable<Expectation['callback']>,
  { target }: StepContext,
): Promise<string | undefined> {
  const transactionId = String(expected.payment);
  const status = expected.status ?? 'delivered';
  const callbacks = await callbacksOf(transactionId, target.gateway);
  const [callback] = callbacks;
  if (callback === undefined) return `callback: the gateway has none for payment ${transactionId}`;
  if (callbacks.length > 1) return `callback: the gateway has ${callbacks.length} for payment ${transactionId}`;
  if (callback.status !== status) {
    const last = callback.attempts.at(-1);
    const why = last === undefined ? 'no attempt was made' : (last.error ?? `answered ${last.response?.status}`);
    return `callback: expected ${status}, is ${callback.status} (${why})`;
  }
  const made = callback.attempts.length;
  if (expected.attempts !== undefined && made !== expected.attempts) {
    return `callback: expected ${expected.attempts} attempts, ${made} were made`;
  }
  const received = target.partnerServer?.received.filter((it) => it.transactionId === transactionId);
  // One that is under way has reached the partner, and is no attempt that was made.
  const underWay = status === 'pending' && received?.length === made + 1;
  if (received !== undefined && received.length !== made && !underWay) {
    return `callback: ${made} attempts were made, ${received.length} reached the partner`;
  }
  const bodies = received?.map(({ body }) => body) ?? callback.attempts.map(({ request }) => request.body);
  const [body] = bodies;
  const other = bodies.find((it) => it !== body);
  if (other !== undefined) return `callback: attempts differ, ${shown(body)} and ${shown(other)}`;
  if (expected.fields === undefined) return undefined;
  return difference(body === undefined ? undefined : JSON.parse(body), expected.fields, 'callback');
}
