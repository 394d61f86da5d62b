import { Mismatch } from '../../check.ts';
import { expectQr, generateBody } from '../requests.ts';
import { gap, type Order, type ServiceCheck, type ServiceRun } from '../subject.ts';
import { callbackBody, payOrder } from './callbacks.ts';
import { generate } from './generate.ts';
import { gapWithBox, pushShown } from './pushing.ts';

/** Which of several equal orders a payment pays (PROTOCOL.md, clause CBK-6). */
export const matchChecks: readonly ServiceCheck[] = [
  gap(
    'CBK-6',
    'of equal orders the newest unpaid one is paid, then the other, then the newest again',
    ['sandbox', 'callbacks'],
    async (run) => {
      const order = run.subject.newOrder();
      for (const id of ['FIRST', 'SECOND']) await make(run, order, id);
      for (const id of ['SECOND', 'FIRST', 'SECOND']) await expectPaid(run, order, id);
    },
  ),
  gapWithBox(
    'CBK-6',
    'an order on the screen is paid before a newer equal one',
    ['sandbox', 'callbacks'],
    async (run, box) => {
      const order = run.subject.newOrder();
      const orderId = idOf(order, 'SHOWN');
      await pushShown(run, order, { orderId });
      await make(run, order, 'NEWER');
      await expectPaid(run, order, 'SHOWN');
      // Otherwise the next check's box would get this payment.
      await box.find('payment', (it) => it.orderId === orderId);
    },
  ),
];

function idOf({ content }: Order, id: string): string {
  return `${id}-${content}`;
}

async function make(run: ServiceRun, order: Order, id: string): Promise<void> {
  expectQr(await generate(run, { ...generateBody(run, order), orderId: idOf(order, id) }), 'the request');
}

async function expectPaid(run: ServiceRun, order: Order, id: string): Promise<void> {
  const { orderId } = await callbackBody(run, await payOrder(run, order));
  if (orderId === idOf(order, id)) return;
  throw new Mismatch(`the callback names ${String(orderId)}, expected ${idOf(order, id)}`);
}
