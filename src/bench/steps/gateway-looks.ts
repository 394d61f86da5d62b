import type { Expectation } from '../scenario.ts';
import { difference, shown } from '../values.ts';
import { boxOf, type StepContext } from './context.ts';

/** How the gateway does not know what was expected from the box; undefined when it does. */
export async function lookAtReport(
  report: NonNullable<Expectation['report']>,
  context: StepContext,
): Promise<string | undefined> {
  const { gateway } = context.target;
  if ('order' in report) {
    const order = (await gateway.orders()).find((it) => [it.id, it.orderId].includes(String(report.order)));
    if (order === undefined) return `report: the gateway knows no order ${report.order}`;
    return difference(order, { status: report.status }, `report: order ${report.order}`);
  }
  const { terminalCode } = boxOf(context);
  const payment = (await gateway.payments()).find((it) => it.transactionId === String(report.payment));
  if (payment === undefined) return `report: the gateway knows no payment ${report.payment}`;
  const told = payment.boxes.find((it) => it.terminalCode === terminalCode);
  if (told === undefined) return `report: ${terminalCode} is not told of payment ${report.payment}`;
  return told.reportedAt === null ? `report: ${terminalCode} has not reported payment ${report.payment}` : undefined;
}

/** How the partner was not called as expected, by what the gateway tells and what the partner's server received. */
export async function lookAtCallback(
  expected: NonNullable<Expectation['callback']>,
  { target }: StepContext,
): Promise<string | undefined> {
  const transactionId = String(expected.payment);
  const status = expected.status ?? 'delivered';
  const found = (await target.gateway.callbacks()).filter((it) => it.transactionId === transactionId);
  const [callback] = found;
  if (callback === undefined) return `callback: the gateway has none for payment ${transactionId}`;
  if (found.length > 1) return `callback: the gateway has ${found.length} for payment ${transactionId}`;
  if (callback.status !== status) {
    const last = callback.attempts.at(-1);
    const why = last === undefined ? 'no attempt was made' : (last.error ?? `answered ${last.response?.status}`);
    return `callback: expected ${status}, is ${callback.status} (${why})`;
  }
  const made = callback.attempts.length;
  if (expected.attempts !== undefined && made !== expected.attempts) {
    return `callback: expected ${expected.attempts} attempts, ${made} were made`;
  }
  const received = target.shop?.received.filter((it) => it.transactionId === transactionId);
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
