import type { DownOf } from '../../../protocol/messages.ts';
import { Mismatch } from '../../check.ts';
import { recordOf } from '../json.ts';
import { each, expectRefused, expectSame, expectSuccess, ownQr, pay, pushBody } from '../requests.ts';
import { type PlayedBox, withBox } from '../simulated-box.ts';
import type { Order, ServiceCheck, ServiceRun } from '../subject.ts';
import { send } from './push.ts';
import { expectHeld, hold, QUIET_MS, settling, shown, started } from './pushing.ts';

/** What a box shows after another push, after the same one, and when it is paid. */
export const screenChecks: readonly ServiceCheck[] = [
  {
    clause: 'SND-7',
    title: 'a QR that the partner made himself is shown',
    level: 'gap',
    needs: ['a box to play'],
    run: (run) =>
      withBox(run, async () => {
        const order = run.subject.newOrder();
        expectSuccess(
          await send(run, pushBody(run, order, ownQr(run.subject, order))),
          "a push of the partner's own QR",
        );
      }),
  },
  {
    clause: 'SND-8',
    title: 'a newer push goes to the box although one is on its screen',
    level: 'spec',
    needs: ['a box to play'],
    run: (run) =>
      withBox(run, async (box) => {
        await shown(run, run.subject.newOrder());
        const order = run.subject.newOrder();
        expectSuccess(await send(run, pushBody(run, order, ownQr(run.subject, order))), 'a newer push');
        if (box.of('show').at(-1)?.orderId !== order.content)
          throw new Mismatch('the box is not told of the newer push');
      }),
  },
  {
    clause: 'SND-9',
    title:
      'the same orderId and QR is one push while it is awaited and on the screen; without an orderId it is a new one',
    level: 'gap',
    needs: ['a box to play'],
    run: judgeRepeated,
  },
  {
    clause: 'CBK-7',
    title: 'a credit is told to the box that shows the order, a debit is not',
    level: 'spec',
    needs: ['a box to play', 'sandbox'],
    run: (run) =>
      withBox(run, async (box) => {
        const order = run.subject.newOrder();
        await shown(run, order);
        const [show] = box.of('show');
        await pay(run, order, { transType: 'D' });
        if ((await box.hears('payment', isOf(order), QUIET_MS)) !== undefined)
          throw new Mismatch('the box is told of a debit');
        const transactionId = await pay(run, order);
        const payment = await box.hears('payment', isOf(order));
        if (payment === undefined) throw new Mismatch('the box is not told of a credit');
        const expected = { transactionId, pushId: show?.pushId, orderId: order.content, amount: order.amount };
        await each(Object.entries(expected), async ([field, value]) => {
          const actual = recordOf(payment)[field];
          if (actual !== value) throw new Mismatch(`${field}: expected ${value}, the box is told ${String(actual)}`);
        });
      }),
  },
  {
    clause: 'CBK-7',
    title: 'a box that is off when its order is paid is told of it when it comes back',
    level: 'spec',
    needs: ['a box to play', 'sandbox'],
    run: async (run) => {
      const order = run.subject.newOrder();
      await withBox(run, () => shown(run, order));
      const transactionId = await pay(run, order);
      await withBox(run, async (box) => {
        const payment = await box.hears('payment', isOf(order));
        if (payment?.transactionId !== transactionId) throw new Mismatch('the box is not told of the payment');
      });
    },
  },
  {
    clause: 'CBK-7',
    title: 'an order that is paid before its QR is on the screen is told to the box, and its push is taken back',
    level: 'spec',
    needs: ['a box to play', 'sandbox'],
    run: (run) => withBox(run, (box) => judgePaidBefore(run, box), hold),
  },
  {
    clause: 'CBK-7',
    title: 'an order that is paid is taken back from a box that showed it before another did',
    level: 'spec',
    needs: ['a box to play', 'a box that is on', 'sandbox'],
    run: (run) =>
      withBox(run, async (box) => {
        const order = run.subject.newOrder();
        await shown(run, order);
        const { terminalCode = '', serialNumber = '' } = run.subject.options.boxOn ?? {};
        await shown(run, order, { terminalCode, serialNumber });
        await pay(run, order);
        const { pushId } = await box.next('show');
        if ((await withdrawnOf(box, pushId)) === undefined) throw new Mismatch('the box still has the order');
        if (box.of('payment').some(isOf(order))) throw new Mismatch('the payment is told to both boxes');
      }),
  },
];

async function judgePaidBefore(run: ServiceRun, box: PlayedBox): Promise<void> {
  const { order, answer, show } = await started(run, box);
  const transactionId = await pay(run, order);
  const payment = await box.hears('payment', isOf(order));
  if (payment === undefined) throw new Mismatch('the box is not told of the payment');
  expectSame('the payment that the box is told of', transactionId, payment.transactionId);
  expectSame('its amount', order.amount, payment.amount);
  if ((await withdrawnOf(box, show.pushId)) === undefined) throw new Mismatch('the box is not told to leave the push');
  expectRefused(await answer.called, 'a push whose order was paid meanwhile');
}

function withdrawnOf(box: PlayedBox, its: string): Promise<DownOf<'withdraw'> | undefined> {
  return box.hears('withdraw', ({ pushId }) => pushId === its);
}

const isOf =
  ({ content }: Order) =>
  ({ orderId }: { orderId: string }) =>
    orderId === content;

async function judgeRepeated(run: ServiceRun): Promise<void> {
  await withBox(
    run,
    async (box) => {
      const { order, qrCode, answer, show } = await started(run, box);
      const body = pushBody(run, order, qrCode);
      const again = settling(send(run, body));
      await expectHeld(run, again, 'a repetition before the box confirms:');
      await box.show(show);
      expectSuccess(await answer.called, 'the push');
      expectSuccess(await again.called, 'its repetition while it is awaited');
      expectSuccess(await send(run, body), 'its repetition while it is on the screen');
      if (box.of('show').length > 1) throw new Mismatch('the box is told of it more than once');
      const nameless = settling(send(run, { ...body, orderId: '' }));
      const second = await box.comes('show', 2);
      if (second === undefined) throw new Mismatch('a push without an orderId is not a new one');
      await box.show(second);
      expectSuccess(await nameless.called, 'a push without an orderId');
    },
    hold,
  );
}
