import { Mismatch } from '../../check.ts';
import { type CheckContext, gap, type ServiceCheck } from '../check-context.ts';
import { expectQr } from '../expectations.ts';
import type { Order } from '../subject.ts';
import { callbackBody, payOrder } from './callbacks.ts';
import { gapWithBox, pushShown } from './pushing.ts';

/** Which of several equal orders a payment pays (PROTOCOL.md, clause CBK-6). */
export const matchChecks: readonly ServiceCheck[] = [
  gap(
    'CBK-6',
    'of equal orders the newest unpaid one is paid, then the other, then the newest again',
    ['sandbox', 'callbacks'],
    async (t) => {
      const order = t.newOrder();
      for (const id of ['FIRST', 'SECOND']) await make(t, order, id);
      for (const id of ['SECOND', 'FIRST', 'SECOND']) await expectPaid(t, order, id);
    },
  ),
  gapWithBox(
    'CBK-6',
    'an order on the screen is paid before a newer equal one',
    ['sandbox', 'callbacks'],
    async (t, box) => {
      const order = t.newOrder();
      const orderId = idOf(order, 'SHOWN');
      await pushShown(t, order, { orderId });
      await make(t, order, 'NEWER');
      await expectPaid(t, order, 'SHOWN');
      // Without this the next check's box would get the payment.
      await box.find('payment', (it) => it.orderId === orderId);
    },
  ),
];

function idOf({ content }: Order, id: string): string {
  return `${id}-${content}`;
}

async function make(t: CheckContext, order: Order, id: string): Promise<void> {
  expectQr(await t.generate({ ...t.generateBody(order), orderId: idOf(order, id) }), 'the request');
}

async function expectPaid(t: CheckContext, order: Order, id: string): Promise<void> {
  const { orderId } = await callbackBody(t, await payOrder(t, order));
  if (orderId === idOf(order, id)) return;
  throw new Mismatch(`the callback names ${String(orderId)}, expected ${idOf(order, id)}`);
}
