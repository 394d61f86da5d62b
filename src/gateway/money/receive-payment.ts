import type { KnownBox } from '../common/directory.ts';
import type { Stored } from '../common/stored.ts';
import type { World } from '../common/world.ts';
import { type CreditSides, ON_TIME } from '../store/repositories/credit-sides.ts';
import type { Notice, StoredPayment } from '../store/repositories/payments.ts';
import type { NewPayment, PaymentDetails } from '../store/schema/tables.ts';
import { paymentEffects } from './payment-effects.ts';

/** Money that arrives at an account. It pays the order of this id, or else the order that fits. */
export interface IncomingMoney {
  money: PaymentDetails;
  bankCode: string;
  pays: PaymentDetails | { orderRef: string };
}

/**
 * Stores a payment, then reports it to boxes and partner. Returns the transaction id (PROTOCOL.md, clauses CBK-4 to
 * CBK-7).
 */
export type ReceivePayment = (incoming: IncomingMoney) => Promise<string>;

/** The parts that receive a stored payment. */
export interface PaymentHearers {
  hub: {
    /** Returns undefined for a box that is not connected. */
    session(terminalCode: string): object | undefined;
    withdrawPush(terminalCode: string, pushId: string, why: 'cancelled' | 'paid'): void;
    sendPayment(terminalCode: string, payment: Notice): void;
    resendFromStore(terminalCodes: readonly string[]): void;
  };
  /** Called once for each payment, after it is stored. */
  onPaid?: (payment: NewPayment) => void;
  dispatcher: {
    /** Makes the dispatcher send the due callbacks of a partner. */
    wake(partner: string): void;
  };
}

export function createReceivePayment(world: World, stored: Stored, hearers: PaymentHearers): ReceivePayment {
  const { clock, random } = world;
  const { store, directory } = stored;
  const { hub } = hearers;
  return async ({ money, bankCode, pays }) => {
    const paidAtMs = clock.wallMs();
    const [transactionId, callbackId] = [random.uuid(), random.uuid()];
    const referenceNumber = `${money.partner}-${random.uuid()}`;
    const isOnline = (terminalCode: string) => hub.session(terminalCode) !== undefined;
    const incoming = { money, bankCode, transactionId, callbackId, referenceNumber, paidAtMs, isOnline };
    const boxes = await directory.boxesOf(money.bank_account);
    const paid = await store
      .within(async (tx) => {
        const callbackTo = (await directory.within(tx.registry).partner(money.partner))?.callback;
        const order = 'orderRef' in pays ? await tx.order(pays.orderRef) : await tx.orderFor(pays, paidAtMs);
        const recipients = await tx.registry.recipients(order, money.bank_account);
        const effects = paymentEffects(incoming, order, { recipients, callbackTo });
        await tx.addPayment(effects, paidAtMs);
        const withdrawn = order === undefined ? [] : await tx.settle(order, 'paid', effects.notices, paidAtMs);
        return { ...effects, withdrawn };
      })
      .catch((error: unknown) => {
        reportFromStore(hearers, money.partner, boxes);
        throw error;
      });
    reportPayment(world, hearers, paid, ON_TIME);
    return transactionId;
  };
}

/** Reports from the store after it failed: it may have stored the payment and lost only its answer. */
export function reportFromStore(
  { hub, dispatcher }: PaymentHearers,
  partner: string,
  boxes: readonly KnownBox[],
): void {
  hub.resendFromStore(boxes.map(({ terminalCode }) => terminalCode));
  dispatcher.wake(partner);
}

/** Reports a stored payment to its boxes and its partner. */
export function reportPayment(
  { changes, log }: World,
  { hub, dispatcher, onPaid }: PaymentHearers,
  { payment, notices, callback, withdrawn }: StoredPayment,
  sides: CreditSides,
): void {
  log.info('payment-received', { transactionId: payment.id, orderId: payment.order_id, amount: payment.amount });
  for (const { terminal_code, push_id, told_at_ms } of notices) {
    if (told_at_ms !== null) hub.sendPayment(terminal_code, { ...payment, push_id, repeated: false, ...sides });
  }
  hub.resendFromStore(notices.filter((it) => it.told_at_ms === null).map((it) => it.terminal_code));
  const isPaid = sides.due === null || sides.due.paid > sides.due.amount;
  for (const { id, terminal_code } of withdrawn) hub.withdrawPush(terminal_code, id, isPaid ? 'paid' : 'cancelled');
  if (callback !== undefined) dispatcher.wake(payment.partner);
  onPaid?.(payment);
  changes.publish('payments', 'orders', 'callbacks');
}
