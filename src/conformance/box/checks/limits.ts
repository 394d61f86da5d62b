import { Mismatch } from '../../check.ts';
import { boxCheck } from '../box-check.ts';
import type { Trial } from '../check-context.ts';
import type { Body } from '../gateway-transcript.ts';
import { expectPaid } from './payments.ts';

const AMOUNT_MAX = 9_999_999_999_999;
const CONTENT_MAX = 99;
const ORDER_ID_MAX = 64;
const LETTERS = { bankAccount: 'aB3'.repeat(7).slice(0, 19), bankCode: 'VCB', userBankName: 'TRAN THI B' };

/** Clause LIM of PROTOCOL.md, as far as a box meets it. */
export const LIMIT_CHECKS = [
  boxCheck('LIM-1', 'a payment of 9,999,999,999,999 đồng is reported, one of more changes nothing', async (trial) => {
    const most = trial.payment({ amount: AMOUNT_MAX });
    trial.tell(most);
    expectPaid(await trial.paid(most.transactionId), most);
    const more = trial.payment({ amount: AMOUNT_MAX + 1 });
    trial.tell(more);
    await trial.echo();
    const isBelieved = trial.since('paid').some(({ transactionId }) => transactionId === more.transactionId);
    if (isBelieved) throw new Mismatch('the box says that more was paid');
  }),
  boxCheck('LIM-2', 'an order for an account of 19 letters and digits is shown', async (trial) => {
    trial.gateway.account = LETTERS;
    await trial.reconnected();
    await expectShown(trial, trial.order(LETTERS));
  }),
  boxCheck('LIM-3', 'an order with a content of 99 characters and an id of 64 is shown', async (trial) => {
    const order = trial.order();
    await expectShown(trial, { ...order, content: 'ế'.repeat(CONTENT_MAX), orderId: 'x'.repeat(ORDER_ID_MAX) });
  }),
];

async function expectShown(trial: Trial, order: Body<'show'>): Promise<void> {
  trial.tell(order);
  const verdict = await trial.verdictOn(order.pushId);
  if (verdict.type === 'rejected') throw new Mismatch(`rejected with ${verdict.code}: ${verdict.reason}`);
}
