import type { FaultName } from '../../protocol/faults.ts';
import type { Directory } from '../common/directory.ts';
import type { Stored } from '../common/stored.ts';
import type { World } from '../common/world.ts';
import {
  createReceivePayment,
  type IncomingMoney,
  type PaymentHearers,
  type ReceivePayment,
} from '../money/receive-payment.ts';
import { asNews, type LatePayment } from './fault-news.ts';
import type { Faults } from './faults.ts';

const OTHER_VND = 1_000;

/** A content that no order has. */
export const OTHER_CONTENT = 'ANOTHER CONTENT';

/** Returns a valid amount in đồng that differs from `amount`. */
export function otherAmount(amount: number): number {
  return amount > OTHER_VND ? amount - OTHER_VND : amount + OTHER_VND;
}

/** Holds the payments that boxes and partner receive late. Another payment with the same fields is then late too. */
export class LatePayments {
  readonly #over = new Map<string, Promise<unknown>>();

  /** Delays the callback: the partner must not get it before `over` settles. */
  add(payment: LatePayment, over: Promise<unknown>): void {
    const key = keyOf(payment);
    this.#over.set(key, over);
    void over.then(() => {
      if (this.#over.get(key) === over) this.#over.delete(key);
    });
  }

  /** Settles when the callback may be sent. Returns undefined if it may be sent at once. */
  until(payment: LatePayment): Promise<unknown> | undefined {
    return this.#over.get(keyOf(payment));
  }
}

function keyOf({ bankAccount, content, amount }: LatePayment): string {
  return JSON.stringify([bankAccount, content, amount]);
}

/** Adds the faults of payments. Each changed payment is stored and reported once (PROTOCOL.md, clause FLT-7). */
export function withPaymentFaults(
  world: World,
  stored: Stored,
  hearers: PaymentHearers,
  { faults, latePayments }: { faults: Faults; latePayments: LatePayments },
): ReceivePayment {
  const { directory } = stored;
  const receive = createReceivePayment(world, stored, hearers);
  return async (asked) => {
    const { money } = asked;
    const boxes = (await directory.boxesOf(money.bank_account)).map((it) => it.terminalCode);
    const subject = { boxes, content: money.content };
    const happens = (fault: FaultName) => faults.take(fault, subject) !== undefined;
    let incoming = asked;
    if (happens('wrong-amount')) incoming = withMoney(incoming, { amount: otherAmount(money.amount) });
    if (happens('wrong-content')) incoming = withMoney(incoming, { content: OTHER_CONTENT });
    if (happens('wrong-account')) incoming = await toOtherAccount(incoming, directory);
    if (happens('paid-twice')) await receive(incoming);
    const late = faults.delay('paid-late', subject);
    if (late === undefined) return receive(incoming);
    const lateMs = (late.seconds ?? 0) * 1000;
    const over = late.delayed(lateMs);
    const { bank_account: bankAccount, content, amount } = incoming.money;
    const payment = { bankAccount, content, amount };
    latePayments.add(payment, over);
    // The other gateways must know this before they find the payment.
    await world.place.tell(asNews({ about: 'late-payment', id: late.id, payment, ms: lateMs }));
    return createReceivePayment(world, stored, laterHearers(over, hearers))(incoming);
  };
}

/** Changes the money of a payment. It then pays any order that it fits. */
function withMoney({ money, bankCode }: IncomingMoney, change: Partial<IncomingMoney['money']>): IncomingMoney {
  const { partner, bank_account, content, amount, trans_type } = money;
  const other = { partner, bank_account, content, amount, trans_type, ...change };
  return { money: other, bankCode, pays: other };
}

/** Moves a payment to another account of its partner. If there is none, it pays no order. */
async function toOtherAccount(incoming: IncomingMoney, directory: Directory): Promise<IncomingMoney> {
  const { partner, bank_account } = incoming.money;
  const account = (await directory.accountsOf(partner, 2)).find((it) => it.bankAccount !== bank_account);
  if (account === undefined) return { ...incoming, pays: { orderRef: '' } };
  return { ...withMoney(incoming, { bank_account: account.bankAccount }), bankCode: account.bankCode };
}

/** Reports payments to boxes and partner only after `over`. After a restart, the store still has them to report. */
function laterHearers(over: Promise<unknown>, hearers: PaymentHearers): PaymentHearers {
  const { hub, dispatcher } = hearers;
  const later = (report: () => void) => void over.then(report);
  return {
    hub: {
      session: (terminalCode) => hub.session(terminalCode),
      sendPayment: (...args) => later(() => hub.sendPayment(...args)),
      resendFromStore: (...args) => later(() => hub.resendFromStore(...args)),
      withdrawPush: (...args) => later(() => hub.withdrawPush(...args)),
    },
    onPaid: (payment) => later(() => hearers.onPaid?.(payment)),
    dispatcher: { wake: (partner) => later(() => dispatcher.wake(partner)) },
  };
}
