import type { NewPayment, Notice, PaymentDetails } from '../../store/repositories/payments.ts';
import type { Context } from '../context.ts';
import { paymentEffects } from './payment-effects.ts';

/** Money that arrives at an account. It pays the order that fits, or the order with this id. */
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

export interface ReceivePaymentDeps
  extends Pick<Context, 'directory' | 'store' | 'changes' | 'clock' | 'random' | 'log'> {
  hub: {
    /** undefined for a box that is not connected. */
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

export function createReceivePayment(deps: ReceivePaymentDeps): ReceivePayment {
  const { store, hub, dispatcher, directory, clock, random, changes, log } = deps;
  return async ({ money, bankCode, pays }) => {
    const paidAtMs = clock.wallMs();
    const [transactionId, callbackId] = [random.uuid(), random.uuid()];
    const referenceNumber = `${money.partner}-${random.uuid()}`;
    const isOnline = (terminalCode: string) => hub.session(terminalCode) !== undefined;
    const incoming = { money, bankCode, transactionId, callbackId, referenceNumber, paidAtMs, isOnline };
    const boxes = directory.boxesOf(money.bank_account).map(({ terminalCode }) => terminalCode);
    const stored = await store.payments
      .add(pays, paidAtMs, (order) => paymentEffects(incoming, order, directory))
      .catch((error: unknown) => {
        // The store may have stored the payment, and only its answer was lost.
        hub.resendFromStore(boxes);
        dispatcher.wake(money.partner);
        throw error;
      });
    const { payment, notices, callback, withdrawn } = stored;
    log.info('payment', { transactionId, orderId: payment.order_id, amount: payment.amount });
    for (const { terminal_code, push_id, told_at_ms } of notices) {
      if (told_at_ms === null) hub.resendFromStore([terminal_code]);
      else hub.sendPayment(terminal_code, { ...payment, push_id, repeated: false });
    }
    for (const { id, terminal_code } of withdrawn) hub.withdrawPush(terminal_code, id, 'paid');
    if (callback !== undefined) dispatcher.wake(payment.partner);
    deps.onPaid?.(payment);
    changes.publish('payments', 'orders', 'callbacks');
    return transactionId;
  };
}
