import type { Clock } from '../../lib/clock.ts';
import type { GatewayClient, PaymentView } from '../engine/clients/gateway.ts';
import type { Measurements } from './measurements.ts';
import type { FleetOrder, FleetPayment, OrderTracker } from './order-tracker.ts';

/** Reports that come later than this after the end of the load count as lost. One box announces payments 3 s apart. */
export const SETTLE_TIMEOUT_MS = 30_000;
const LOOK_MS = 500;

/** The part of a box that the verdict needs. */
export interface AnnouncingBox {
  readonly terminalCode: string;
  /** Returns the number of payments announced since the box started. */
  announcements(): number;
}

export interface JudgeInput {
  gateway: GatewayClient;
  boxes: readonly AnnouncingBox[];
  tracker: OrderTracker;
  measured: Measurements;
  clock: Clock;
  /**
   * Returns the number of callbacks that the partner received for a payment; undefined when the bench does not run the
   * partner's server.
   */
  callbacksReceived: ((transactionId: string) => number) | undefined;
  /** The time limit for late reports and callbacks. */
  settleTimeoutMs: number;
  /** Ends the wait without a verdict. */
  signal: AbortSignal;
}

/**
 * Waits until every payment has its callback and its report. Then it adds problems to the tracker: accepted payments
 * that were not shown, reported or announced exactly once, payments that another box announced, and payments that
 * nobody made. Throws MissingPeerError when the gateway does not answer.
 */
export async function judge(input: JudgeInput): Promise<void> {
  const { tracker, clock, signal } = input;
  const untilMs = clock.monotonicMs() + input.settleTimeoutMs;
  let rows = await paymentsOf(input);
  while (!isSettled(input, rows) && clock.monotonicMs() < untilMs && !signal.aborted) {
    await clock.sleep(LOOK_MS, signal);
    rows = await paymentsOf(input);
  }
  if (signal.aborted) return;
  const announced = new Map<string, number>();
  for (const order of tracker.orders) {
    judgeScreen(order, tracker);
    const own = rows.get(order.content) ?? [];
    judgePayment(order, own, input);
    announced.set(order.terminalCode, (announced.get(order.terminalCode) ?? 0) + own.length);
  }
  for (const box of input.boxes) {
    const [expected, count] = [announced.get(box.terminalCode) ?? 0, box.announcements()];
    if (count !== expected) tracker.problem(`${box.terminalCode} announced ${count} payments, ${expected} were paid`);
  }
}

/** Returns the gateway's payments of this run, by content. */
async function paymentsOf({ gateway, tracker }: JudgeInput): Promise<Map<string, PaymentView[]>> {
  const found = new Map<string, PaymentView[]>();
  for await (const page of gateway.payments()) {
    for (const row of page.filter(({ content }) => tracker.orderWith(content) !== undefined)) {
      const rows = found.get(row.content) ?? [];
      if (!rows.some(({ transactionId }) => transactionId === row.transactionId)) rows.push(row);
      found.set(row.content, rows);
    }
  }
  return found;
}

function isSettled({ tracker, callbacksReceived }: JudgeInput, rows: ReadonlyMap<string, PaymentView[]>): boolean {
  for (const order of tracker.orders) {
    const { transactionId } = order.payment ?? {};
    const own = rows.get(order.content) ?? [];
    if (transactionId !== undefined && own.length === 0) return false;
    for (const row of own) {
      if (row.boxes.length === 0 || row.boxes.some(({ reportedAt }) => reportedAt === null)) return false;
      if (tracker.paidShown(row.transactionId) === undefined || callbacksReceived?.(row.transactionId) === 0)
        return false;
    }
  }
  return true;
}

function judgeScreen(order: FleetOrder, tracker: OrderTracker): void {
  const { orderId, terminalCode, answer } = order;
  if (answer === 'SUCCESS') {
    if (!order.wasShown) tracker.problem(`order ${orderId} was answered SUCCESS, but never was on ${terminalCode}`);
  } else if (answer !== undefined && tracker.shownOn(terminalCode) === order) {
    tracker.problem(`order ${orderId} was answered ${answer}, but its QR is on ${terminalCode}`);
  }
}

function judgePayment(order: FleetOrder, rows: readonly PaymentView[], input: JudgeInput): void {
  const { tracker } = input;
  const { payment, orderId } = order;
  for (const row of rows) {
    // The gateway may have accepted a payment whose answer was lost.
    if (payment !== undefined && payment.refusal !== undefined) payment.transactionId ??= row.transactionId;
    if (payment?.transactionId === row.transactionId) judgeOne(order, payment, row, input);
    else tracker.problem(`the gateway lists the payment ${row.transactionId} of order ${orderId}, which nobody made`);
  }
  if (payment?.transactionId !== undefined && !rows.some((row) => row.transactionId === payment.transactionId)) {
    tracker.problem(
      `the gateway accepted the payment ${payment.transactionId} of order ${orderId}, but does not list it`,
    );
  }
}

function judgeOne(order: FleetOrder, payment: FleetPayment, row: PaymentView, input: JudgeInput): void {
  const { tracker, measured, callbacksReceived } = input;
  const { transactionId, boxes, paidAt } = row;
  const { terminalCode, orderId, amount, content } = order;
  const what = `the payment ${transactionId} of order ${orderId}`;
  const shown = tracker.paidShown(transactionId);
  if (shown === undefined) {
    tracker.problem(`${what} was not shown on ${terminalCode}`);
  } else {
    if (shown.times !== 1) tracker.problem(`${what} was shown ${shown.times} times`);
    if (shown.terminalCode !== terminalCode)
      tracker.problem(`${what} for ${terminalCode} was on ${shown.terminalCode}`);
    if (shown.amount !== amount || shown.content !== content) {
      tracker.problem(`${what} of ${amount} was shown as ${shown.amount}, ${shown.content}`);
    }
    measured.paidShownMs.push(shown.firstAtMs - payment.askedAtMs);
  }
  if (row.amount !== amount) tracker.problem(`${what} of ${amount} is ${row.amount} at the gateway`);
  const told = boxes.map((box) => box.terminalCode);
  if (told.join() !== terminalCode)
    tracker.problem(`${what} for ${terminalCode} was sent to ${told.join(', ') || 'no box'}`);
  for (const { reportedAt, terminalCode: by } of boxes) {
    if (reportedAt === null) tracker.problem(`${what} was not reported by ${by}`);
    else measured.reportedMs.push(Date.parse(reportedAt) - Date.parse(paidAt));
  }
  if (callbacksReceived?.(transactionId) === 0) tracker.problem(`the partner received no callback for ${what}`);
}
