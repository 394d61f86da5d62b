import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../lib/log.ts';
import type { Random } from '../../lib/random.ts';
import type { Hub } from '../boxes/hub.ts';
import type { CallbackDispatcher } from '../callbacks/dispatcher.ts';
import type { Changes } from '../changes.ts';
import type { Directory } from '../directory.ts';
import type { PaymentDetails } from '../store/repositories/payments.ts';
import type { Store } from '../store/store.ts';
import { paymentEffects } from './payment-effects.ts';

/** Money that comes in at an account, and what it pays: whatever fits it, or one order by its id. */
export interface IncomingMoney {
  money: PaymentDetails;
  bankCode: string;
  pays: PaymentDetails | { orderRef: string };
}

/** Keeps a payment, then tells its boxes and its partner; the transaction id (PROTOCOL.md, clauses CBK-4 to CBK-7). */
export type ReceivePayment = (paying: IncomingMoney) => Promise<string>;

export interface ReceivePaymentDeps {
  directory: Directory;
  store: Store;
  hub: Pick<Hub, 'session' | 'sendPayment' | 'resendFromStore' | 'withdrawPush'>;
  dispatcher: Pick<CallbackDispatcher, 'wake'>;
  changes: Changes;
  clock: Clock;
  random: Random;
  log: Logger;
}

export function createReceivePayment({
  store,
  hub,
  dispatcher,
  directory,
  clock,
  random,
  changes,
  log,
}: ReceivePaymentDeps): ReceivePayment {
  return async ({ money, bankCode, pays }) => {
    const paidAtMs = clock.wallMs();
    const [transactionId, callbackId] = [random.uuid(), random.uuid()];
    const referenceNumber = `${money.partner}-${random.uuid()}`;
    const isOnline = (terminalCode: string) => hub.session(terminalCode) !== undefined;
    const incoming = { money, bankCode, transactionId, callbackId, referenceNumber, paidAtMs, isOnline };
    const boxes = directory.boxesOf(money.bank_account).map(({ terminalCode }) => terminalCode);
    const kept = await store.payments
      .add(pays, paidAtMs, (order) => paymentEffects(incoming, order, directory))
      .catch((error: unknown) => {
        // It may be kept all the same, when only the answer of the store was lost.
        hub.resendFromStore(boxes);
        dispatcher.wake(money.partner);
        throw error;
      });
    const { payment, notices: told, callback, withdrawn } = kept;
    log.info('payment', { transactionId, orderId: payment.order_id, amount: payment.amount });
    for (const { terminal_code, push_id, told_at_ms } of told) {
      if (told_at_ms === null) hub.resendFromStore([terminal_code]);
      else hub.sendPayment(terminal_code, { ...payment, push_id, repeated: false });
    }
    for (const { id, terminal_code } of withdrawn) hub.withdrawPush(terminal_code, id, 'paid');
    if (callback !== undefined) dispatcher.wake(payment.partner);
    changes.publish('payments', 'orders', 'callbacks');
    return transactionId;
  };
}
