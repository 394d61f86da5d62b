import { Mismatch, precondition } from '../../check.ts';
import { spec } from '../box-check.ts';
import { ANNOUNCEMENT_MAX_MS } from '../box-pages.ts';
import type { Body, CheckContext } from '../check-context.ts';
import { expectPaymentIgnored, expectQrUncovered } from './ignored.ts';

/** Every box remembers at least this many payments. */
const REMEMBERED = 5;
const AMOUNT_MAX = 9_999_999_999_999;

/** Payments, which a box reports and announces once (PROTOCOL.md, clauses AGT-5, AGT-6 and MSG-7). */
export const PAYMENT_CHECKS = [
  spec('AGT-5', 'a payment for the order on the screen is reported with its numbers', [], async (t) => {
    await t.expectPaid(t.paymentFor(await t.pushShown()));
  }),
  spec('AGT-5', 'a payment without an order on the screen is reported', [], async (t) => {
    await t.expectPaid(t.payment());
  }),
  spec('AGT-5', 'payments that come together are each reported, in their order', [], async (t) => {
    const payments = [t.payment(), t.payment(), t.payment()];
    t.send(...payments);
    for (const { transactionId } of payments) await t.paid(transactionId);
    const ids = (all: { transactionId: string }[]) => all.map(({ transactionId }) => transactionId).join();
    if (ids(t.received('paid')) !== ids(payments)) {
      throw new Mismatch('they were reported in another order, or not once each');
    }
  }),
  spec('AGT-5', 'the QR of a paid order goes away', ['screen'], async (t) => {
    const order = await t.qrShown();
    await t.paymentsReported(t.paymentFor(order));
    await t.box.expectQrGone(order);
  }),
  spec('AGT-5', 'a paid order is over', [], async (t) => {
    const order = await t.pushShown();
    await t.paymentsReported(t.paymentFor(order));
    t.withdraw(order.pushId);
    const isIt = ({ pushId }: { pushId: string }) => pushId === order.pushId;
    const answer = await precondition('an answer', () => t.receive('an answer', ['ended', 'rejected'], isIt));
    if (answer.type === 'ended') throw new Mismatch(`it was still there, and ended as ${answer.how} afterwards`);
  }),
  spec('AGT-5', 'the QR of a paid order does not come back', ['screen', 'slow'], async (t) => {
    const order = await t.qrShown();
    t.send(t.paymentFor(order));
    await precondition('a screen without it', () => t.box.expectQrGone(order));
    await t.box.expectQrStaysAway(order, ANNOUNCEMENT_MAX_MS);
  }),
  spec('MSG-7', 'a payment that is sent again is answered again, as before', [], async (t) => {
    const payment = t.payment();
    t.send(payment);
    const first = await precondition('a report', () => t.paid(payment.transactionId));
    for (const _ of [1, 2]) {
      t.ignoreEarlier();
      const again = await t.expectPaid({ ...payment, repeated: true });
      if (again.id !== first.id) throw new Mismatch('the report of the same payment has another id');
    }
    await t.sync(() => (t.received('paid').length > 1 ? 'one message was answered more than once' : undefined));
  }),
  spec('AGT-5', 'a payment that is sent again is not announced again', ['screen'], async (t) => {
    await expectUncovered(t, await paymentAnnounced(t));
  }),
  spec('AGT-5', 'nor after several other payments', ['screen', 'slow'], async (t) => {
    const payment = await paymentAnnounced(t);
    for (let count = 0; count < REMEMBERED; count += 1) await t.paymentsReported(t.payment());
    await expectUncovered(t, payment);
  }),
  spec('AGT-6', 'after a payment for another order the QR is on screen again', ['screen', 'slow'], async (t) => {
    const order = await t.qrShown();
    await t.paymentsReported(t.payment({ amount: order.amount }));
    await t.box.expectQr(order, ANNOUNCEMENT_MAX_MS);
    if (t.hasEnded(order)) throw new Mismatch('the order on the screen was ended');
  }),
  spec('AGT-6', 'a payment for another order of the same amount does not end the one on the screen', [], async (t) => {
    const order = await t.pushShown();
    t.send(t.payment({ amount: order.amount }));
    await t.sync(() => (t.hasEnded(order) ? 'the order on the screen was ended' : undefined));
    t.withdraw(order.pushId);
    const isIt = ({ pushId }: { pushId: string }) => pushId === order.pushId;
    const answer = await precondition('an answer', () => t.receive('an answer', ['ended', 'rejected'], isIt));
    if (answer.type === 'rejected') throw new Mismatch('the order on the screen was over before its withdrawal');
  }),
];

export const PAYMENT_LIMIT_CHECK = spec(
  'LIM-1',
  'a payment of 9,999,999,999,999 đồng is reported, a larger one is not',
  [],
  async (t) => {
    await t.expectPaid(t.payment({ amount: AMOUNT_MAX }));
    const larger = t.payment({ amount: AMOUNT_MAX + 1 });
    await expectPaymentIgnored(t, larger, () => t.send(larger));
  },
);

/** Pays the order on the screen, reported and announced. Throws PreconditionFailed otherwise. */
export async function paymentAnnounced(t: CheckContext): Promise<Body<'payment'>> {
  const order = await t.qrShown();
  const payment = t.paymentFor(order);
  await t.paymentsReported(payment);
  await precondition('a payment on the screen', () => t.box.expectQrGone(order));
  return payment;
}

/** Sends the payment again. Throws Mismatch when it covers the QR of the next order. */
async function expectUncovered(t: CheckContext, payment: Body<'payment'>): Promise<void> {
  await expectQrUncovered(t, await t.qrUndisturbed(), payment);
}
