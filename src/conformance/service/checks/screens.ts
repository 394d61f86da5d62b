import type { DownOf } from '../../../protocol/messages.ts';
import { Mismatch } from '../../check.ts';
import { expectFields, expectRefused, expectSame, expectSuccess, pushBody, simulatePayment } from '../requests.ts';
import { type SimulatedBox, withSimulatedBox } from '../simulated-box.ts';
import { gap, type Order, type ServiceCheck, type ServiceRun, spec } from '../subject.ts';
import { pushOrder, sendPush } from './push.ts';
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
  gapWithBox('SND-7', 'a QR that the partner made himself is shown', async (run) => {
    expectSuccess(await pushOrder(run), "a push of the partner's own QR");
  }),
  specWithBox('SND-8', 'a newer push goes to the box although one is on its screen', async (run, box) => {
    await pushShown(run, run.subject.newOrder());
    const order = run.subject.newOrder();
    expectSuccess(await pushOrder(run, order), 'a newer push');
    if (box.of('show').at(-1)?.orderId !== order.content) throw new Mismatch('the box does not get the newer push');
  }),
  gap(
    'SND-9',
    'the same orderId and QR is one push while it is awaited and on the screen; without an orderId it is a new one',
    ['a simulated box'],
    judgeRepeated,
  ),
  specWithBox('CBK-7', 'the box that shows the order gets a credit, and no debit', ['sandbox'], async (run, box) => {
    const order = run.subject.newOrder();
    await pushShown(run, order);
    const [show] = box.of('show');
    await simulatePayment(run, order, { transType: 'D' });
    if ((await box.find('payment', isOf(order), QUIET_MS)) !== undefined) throw new Mismatch('the box gets a debit');
    const transactionId = await simulatePayment(run, order);
    const payment = await box.find('payment', isOf(order));
    if (payment === undefined) throw new Mismatch('the box does not get a credit');
    const expected = { transactionId, pushId: show?.pushId, orderId: order.content, amount: order.amount };
    await expectFields(expected, payment);
  }),
  spec(
    'CBK-7',
    'a box that is off when its order is paid gets the payment when it comes back',
    ['a simulated box', 'sandbox'],
    async (run) => {
      const order = run.subject.newOrder();
      await withSimulatedBox(run, () => pushShown(run, order));
      const transactionId = await simulatePayment(run, order);
      await withSimulatedBox(run, async (box) => {
        const payment = await box.find('payment', isOf(order));
        if (payment?.transactionId !== transactionId) throw new Mismatch('the box does not get the payment');
      });
    },
  ),
  spec(
    'CBK-7',
    'a payment before the QR is on the screen goes to the box, and the push is withdrawn',
    ['a simulated box', 'sandbox'],
    withBox((run, box) => judgePaidBefore(run, box), showNothing),
  ),
  specWithBox(
    'CBK-7',
    'a paid order is withdrawn from a box that showed it before another did',
    ['a box that is on', 'sandbox'],
    async (run, box) => {
      const order = run.subject.newOrder();
      await pushShown(run, order);
      const { terminalCode = '', serialNumber = '' } = run.subject.options.boxOn ?? {};
      await pushShown(run, order, { terminalCode, serialNumber });
      await simulatePayment(run, order);
      const { pushId } = await box.expect('show');
      if ((await withdrawnOf(box, pushId)) === undefined) throw new Mismatch('the box still has the order');
      if (box.of('payment').some(isOf(order))) throw new Mismatch('both boxes get the payment');
    },
  ),
];

async function judgePaidBefore(run: ServiceRun, box: SimulatedBox): Promise<void> {
  const { order, answer, show } = await startPush(run, box);
  const transactionId = await simulatePayment(run, order);
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

async function judgeRepeated(run: ServiceRun): Promise<void> {
  await withSimulatedBox(
    run,
    async (box) => {
      const { order, qrCode, answer, show } = await startPush(run, box);
      const body = pushBody(run, order, qrCode);
      const again = pending(sendPush(run, body));
      await expectUnanswered(run, again, 'a repetition before the box confirms:');
      await box.show(show);
      expectSuccess(await answer.called, 'the push');
      expectSuccess(await again.called, 'its repetition while it is awaited');
      expectSuccess(await sendPush(run, body), 'its repetition while it is on the screen');
      if (box.of('show').length > 1) throw new Mismatch('the box gets it more than once');
      const nameless = pending(sendPush(run, { ...body, orderId: '' }));
      const second = await box.waitFor('show', 2);
      if (second === undefined) throw new Mismatch('a push without an orderId is not a new one');
      await box.show(second);
      expectSuccess(await nameless.called, 'a push without an orderId');
    },
    showNothing,
  );
}
