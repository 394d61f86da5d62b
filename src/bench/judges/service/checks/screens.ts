import type { DownOf } from '../../../../protocol/messages.ts';
import { Breach, Mismatch } from '../../check.ts';
import { type CheckContext, gap, type ServiceCheck, spec } from '../check-context.ts';
import { expectFields, expectRefused, expectSame, expectSuccess } from '../expectations.ts';
import { type SimulatedBox, withSimulatedBox } from '../simulated-box.ts';
import type { Order } from '../subject.ts';
import {
  expectUnanswered,
  gapWithBox,
  pending,
  pushShown,
  QUIET_MS,
  showNothing,
  specWithBox,
  startPush,
  withBox,
} from './pushing.ts';

/** More pushes and payments of an order on the screen (PROTOCOL.md, clauses SND-7 to SND-9 and CBK-7). */
export const screenChecks: readonly ServiceCheck[] = [
  gapWithBox('SND-7', 'a QR that the partner made himself is shown', [], async (t) => {
    expectSuccess(await t.pushOrder(), "a push of the partner's own QR");
  }),
  specWithBox('SND-8', 'a newer push goes to the box although one is on its screen', [], async (t, box) => {
    await pushShown(t, t.newOrder());
    const order = t.newOrder();
    expectSuccess(await t.pushOrder(order), 'a newer push');
    if (box.of('show').at(-1)?.orderId !== order.content) throw new Mismatch('the box does not get the newer push');
  }),
  gap(
    'SND-9',
    'the same orderId and QR is one push while it is awaited and on the screen; after its end, or without an orderId, it is a new one',
    ['a simulated box'],
    judgeRepeated,
  ),
  specWithBox('CBK-7', 'the box that shows the order gets a credit, and no debit', ['sandbox'], async (t, box) => {
    const order = t.newOrder();
    await pushShown(t, order);
    const [show] = box.of('show');
    await t.simulatePayment(order, { transType: 'D' });
    if ((await box.find('payment', isOf(order), QUIET_MS)) !== undefined) throw new Mismatch('the box gets a debit');
    const transactionId = await t.simulatePayment(order);
    const payment = await box.find('payment', isOf(order));
    if (payment === undefined) throw new Mismatch('the box does not get a credit');
    const expected = { transactionId, pushId: show?.pushId, orderId: order.content, amount: order.amount };
    await expectFields(expected, payment);
  }),
  spec(
    'CBK-7',
    'a box that is off when its order is paid gets the payment when it comes back',
    ['a simulated box', 'sandbox'],
    async (t) => {
      const order = t.newOrder();
      await withSimulatedBox(t.run, () => pushShown(t, order));
      const transactionId = await t.simulatePayment(order);
      await withSimulatedBox(t.run, async (box) => {
        const payment = await box.find('payment', isOf(order));
        if (payment?.transactionId !== transactionId) throw new Mismatch('the box does not get the payment');
      });
    },
  ),
  spec(
    'CBK-7',
    'a payment before the QR is on the screen goes to the box, and the push is withdrawn',
    ['a simulated box', 'sandbox'],
    withBox((t, box) => judgePaidBefore(t, box), showNothing),
  ),
  specWithBox(
    'CBK-7',
    'a paid order is withdrawn from a box that showed it before another did',
    ['a box that is on', 'sandbox'],
    async (t, box) => {
      const order = t.newOrder();
      await pushShown(t, order);
      const { terminalCode = '', serialNumber = '' } = t.options.boxOn ?? {};
      await pushShown(t, order, { terminalCode, serialNumber });
      await t.simulatePayment(order);
      const { pushId } = await box.expect('show');
      if ((await withdrawnOf(box, pushId)) === undefined) throw new Mismatch('the box still has the order');
      if (box.of('payment').some(isOf(order))) throw new Mismatch('both boxes get the payment');
    },
  ),
];

async function judgePaidBefore(t: CheckContext, box: SimulatedBox): Promise<void> {
  const { order, answer, show } = await startPush(t, box);
  const transactionId = await t.simulatePayment(order);
  const payment = await box.find('payment', isOf(order));
  if (payment === undefined) throw new Mismatch('the box does not get the payment');
  expectSame('the payment that the box gets', transactionId, payment.transactionId);
  expectSame('its amount', order.amount, payment.amount);
  if ((await withdrawnOf(box, show.pushId)) === undefined) throw new Mismatch('the box gets no withdrawal of the push');
  expectRefused(await answer.called, 'a push whose order was paid meanwhile');
}

function withdrawnOf(box: SimulatedBox, its: string): Promise<DownOf<'withdraw'> | undefined> {
  return box.find('withdraw', ({ pushId }) => pushId === its);
}

const isOf =
  ({ content }: Order) =>
  ({ orderId }: { orderId: string }) =>
    orderId === content;

async function judgeRepeated(t: CheckContext): Promise<void> {
  await withSimulatedBox(
    t.run,
    async (box) => {
      const { order, qrCode, answer, show } = await startPush(t, box);
      const body = t.pushBody(order, qrCode);
      const again = pending(t.sendPush(body));
      await expectUnanswered(t, again, 'a repetition before the box confirms:');
      await box.show(show);
      expectSuccess(await answer.called, 'the push');
      expectSuccess(await again.called, 'its repetition while it is awaited');
      expectSuccess(await t.sendPush(body), 'its repetition while it is on the screen');
      if (box.of('show').length > 1) throw new Mismatch('the box gets it more than once');
      await box.send({ type: 'ended', pushId: show.pushId, orderId: show.orderId, how: 'dismissed' });
      const anew = pending(t.sendPush(body));
      const after = await box.waitFor('show', 2);
      if (after === undefined) throw new Breach('after its end the box does not get it again');
      await box.show(after);
      expectSuccess(await anew.called, 'a push after its end');
      const nameless = pending(t.sendPush({ ...body, orderId: '' }));
      const second = await box.waitFor('show', 3);
      if (second === undefined) throw new Mismatch('a push without an orderId is not a new one');
      await box.show(second);
      expectSuccess(await nameless.called, 'a push without an orderId');
    },
    showNothing,
  );
}
