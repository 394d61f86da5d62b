import { Mismatch } from '../conformance.ts';
import { expectQr, expectSuccess, generateBody, pushBody } from './asks.ts';
import { paid, saidOf } from './callbacks.ts';
import { generate } from './generate.ts';
import { recordOf } from './json.ts';
import { withBox } from './played-box.ts';
import { send } from './push.ts';
import type { Order, ServiceCheck, ServiceRun } from './subject.ts';

/** Which of several orders alike a payment belongs to (PROTOCOL.md, clause CBK-6). */
export const matchChecks: readonly ServiceCheck[] = [
  {
    clause: 'CBK-6',
    title: 'of orders alike the newest unpaid one is paid, then the other, then the newest again',
    level: 'gap',
    needs: ['sandbox', 'callbacks'],
    run: async (run) => {
      const order = run.subject.newOrder();
      for (const id of ['FIRST', 'SECOND']) await made(run, order, id);
      for (const id of ['SECOND', 'FIRST', 'SECOND']) await expectPaid(run, order, id);
    },
  },
  {
    clause: 'CBK-6',
    title: 'one that a box shows comes before a newer one',
    level: 'gap',
    needs: ['sandbox', 'callbacks', 'a box to play'],
    run: (run) =>
      withBox(run, async (box) => {
        const order = run.subject.newOrder();
        const qrCode = await made(run, order, 'SHOWN');
        const orderId = idOf(order, 'SHOWN');
        expectSuccess(await send(run, pushBody(run, order, qrCode, { orderId })), 'a push');
        await made(run, order, 'NEWER');
        await expectPaid(run, order, 'SHOWN');
        await box.hears('payment', (it) => it.orderId === orderId);
      }),
  },
];

function idOf({ content }: Order, id: string): string {
  return `${id}-${content}`;
}

/** The QR of an order with this id. */
async function made(run: ServiceRun, order: Order, id: string): Promise<string> {
  const called = await generate(run, { ...generateBody(run, order), orderId: idOf(order, id) });
  expectQr(called, 'the request');
  return String(recordOf(called.json).qrCode);
}

async function expectPaid(run: ServiceRun, order: Order, id: string): Promise<void> {
  const { orderId } = await saidOf(run, await paid(run, order));
  if (orderId === idOf(order, id)) return;
  throw new Mismatch(`the callback names ${String(orderId)}, expected ${idOf(order, id)}`);
}
