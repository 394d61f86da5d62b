import type { UpOf } from '../../../protocol/messages.ts';
import { Mismatch } from '../../check.ts';
import { boxCheck } from '../box-check.ts';
import { NOTICE_MAX_MS, type Trial } from '../check-context.ts';
import type { Body } from '../gateway-transcript.ts';

/** Payments that a box of any size remembers. */
const BETWEEN = 5;

/** What becomes of money (PROTOCOL.md, clauses AGT-5, AGT-6 and MSG-7). */
export const PAYMENT_CHECKS = [
  boxCheck('AGT-5', 'a payment for the order on the screen is reported with its numbers', async (trial) => {
    const order = await trial.shown();
    const payment = trial.paymentOf(order);
    trial.tell(payment);
    expectPaid(await trial.paid(payment.transactionId), payment);
  }),
  boxCheck('AGT-5', 'a payment without an order on the screen is reported', async (trial) => {
    const payment = trial.payment();
    trial.tell(payment);
    expectPaid(await trial.paid(payment.transactionId), payment);
  }),
  boxCheck('AGT-5', 'payments that come at once are each reported, in their order', async (trial) => {
    const payments = [trial.payment(), trial.payment(), trial.payment()];
    for (const payment of payments) trial.tell(payment);
    for (const payment of payments) await trial.paid(payment.transactionId);
    const order = trial.since('paid').map(({ transactionId }) => transactionId);
    const expected = payments.map(({ transactionId }) => transactionId);
    if (order.join() !== expected.join()) throw new Mismatch('they were reported in another order, or not once each');
  }),
  boxCheck(
    'AGT-5',
    'the QR of an order that is paid goes away',
    async (trial) => {
      const order = await trial.onScreen();
      const payment = trial.paymentOf(order);
      trial.tell(payment);
      await trial.given('its report', () => trial.paid(payment.transactionId));
      await trial.qrIsGone(order);
    },
    { needs: ['screen'] },
  ),
  boxCheck('AGT-5', 'an order that is paid is over', async (trial) => {
    const order = await trial.shown();
    const payment = trial.paymentOf(order);
    trial.tell(payment);
    await trial.given('its report', () => trial.paid(payment.transactionId));
    trial.withdraw(order.pushId);
    const isIt = ({ pushId }: { pushId: string }) => pushId === order.pushId;
    const answer = await trial.given('an answer', () => trial.hear('an answer', ['ended', 'rejected'], isIt));
    if (answer.type === 'ended') throw new Mismatch(`it was still there, and ended as ${answer.how} afterwards`);
  }),
  boxCheck(
    'AGT-5',
    'the QR of an order that is paid does not come back',
    async (trial) => {
      const order = await trial.onScreen();
      const payment = trial.paymentOf(order);
      trial.tell(payment);
      await trial.given('a screen without it', () => trial.qrIsGone(order));
      await trial.qrStaysAway(order, NOTICE_MAX_MS);
    },
    { needs: ['screen', 'time'] },
  ),
  boxCheck('MSG-7', 'a payment that is told again is answered again, as before', async (trial) => {
    const payment = trial.payment();
    trial.tell(payment);
    const first = await trial.given('a report', () => trial.paid(payment.transactionId));
    for (const _ of [1, 2]) {
      trial.mark();
      trial.tell({ ...payment, repeated: true });
      const again = await trial.paid(payment.transactionId);
      expectPaid(again, payment);
      if (again.id !== first.id) throw new Mismatch('the report of the same payment has another id');
    }
    await trial.echo();
    if (trial.since('paid').length !== 1) throw new Mismatch('one telling was answered more than once');
  }),
  boxCheck(
    'AGT-5',
    'a payment that is told again is not announced again',
    async (trial) => {
      const payment = await announced(trial);
      const next = await trial.alone();
      trial.mark();
      trial.tell({ ...payment, repeated: true });
      await trial.given('a second report', () => trial.paid(payment.transactionId));
      await trial.qrStays(next, 'the repetition took the screen');
    },
    { needs: ['screen'] },
  ),
  boxCheck(
    'AGT-5',
    'nor when others came between',
    async (trial) => {
      const payment = await announced(trial);
      for (let count = 0; count < BETWEEN; count += 1) {
        const other = trial.payment();
        trial.tell(other);
        await trial.given('its report', () => trial.paid(other.transactionId));
      }
      const next = await trial.alone();
      trial.mark();
      trial.tell({ ...payment, repeated: true });
      await trial.given('a second report', () => trial.paid(payment.transactionId));
      await trial.qrStays(next, 'the repetition took the screen');
    },
    { needs: ['screen', 'time'] },
  ),
  boxCheck(
    'AGT-6',
    'a payment for another order gives the QR on the screen back',
    async (trial) => {
      const order = await trial.onScreen();
      const payment = trial.payment();
      trial.tell(payment);
      await trial.given('its report', () => trial.paid(payment.transactionId));
      await trial.qrIsThere(order, NOTICE_MAX_MS);
      const ended = trial.since('ended').some(({ pushId }) => pushId === order.pushId);
      if (ended) throw new Mismatch('the order on the screen was ended');
    },
    { needs: ['screen', 'time'] },
  ),
  boxCheck('AGT-6', 'a payment for another order does not end the one on the screen', async (trial) => {
    const order = await trial.shown();
    const payment = trial.payment();
    trial.tell(payment);
    await trial.given('its report', () => trial.paid(payment.transactionId));
    await trial.echo();
    const ended = trial.since('ended').find(({ pushId }) => pushId === order.pushId);
    if (ended !== undefined) throw new Mismatch(`the order on the screen was ended as ${ended.how}`);
  }),
];

/** A payment of the order on the screen, which the box has reported and told. Throws Unmet where it has not. */
export async function announced(trial: Trial): Promise<Body<'payment'>> {
  const order = await trial.onScreen();
  const payment = trial.paymentOf(order);
  trial.tell(payment);
  await trial.given('a report', () => trial.paid(payment.transactionId));
  await trial.given('a payment that is told on the screen', () => trial.qrIsGone(order));
  return payment;
}

export function expectPaid(paid: UpOf<'paid'>, { orderId, amount }: Body<'payment'>, isRecorded = true): void {
  if (paid.amount !== amount) throw new Mismatch(`paid says ${paid.amount} đồng, expected ${amount}`);
  if (paid.orderId !== orderId) throw new Mismatch(`paid names the order ${paid.orderId}, expected ${orderId}`);
  if (paid.recorded === isRecorded) return;
  throw new Mismatch(`paid says that the disk of the box ${paid.recorded ? 'has kept it' : 'could not keep it'}`);
}
