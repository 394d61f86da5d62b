import { type CreditSides, ON_TIME } from '../../store/repositories/credit-sides.ts';
import type { NewPayment, Notice, PaymentDetails, StoredPayment } from '../../store/repositories/payments.ts';
import type { Context } from '../context.ts';
import type { KnownBox } from '../directory.ts';
import { assertHome, type ShardPlace } from '../shard.ts';
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
  /** Of a shard: it takes the payments of its own accounts only. */
  place?: Pick<ShardPlace, 'index' | 'count'> | undefined;
  /** Called once for each payment, after it is stored. */
  onPaid?: (payment: NewPayment) => void;
  dispatcher: {
    /** Makes the dispatcher send the due callbacks of a partner. */
    wake(partner: string): void;
  };
}

export function createReceivePayment(deps: ReceivePaymentDeps): ReceivePayment {
  const { store, hub, directory, clock, random, place } = deps;
  return async ({ money, bankCode, pays }) => {
    assertHome(place, money.bank_account);
    const paidAtMs = clock.wallMs();
    const [transactionId, callbackId] = [random.uuid(), random.uuid()];
    const referenceNumber = `${money.partner}-${random.uuid()}`;
    const isOnline = (terminalCode: string) => hub.session(terminalCode) !== undefined;
    const incoming = { money, bankCode, transactionId, callbackId, referenceNumber, paidAtMs, isOnline };
    const boxes = await directory.boxesOf(money.bank_account);
    const callbackTo = (await directory.partner(money.partner))?.callback;
    const stored = await store.payments
      .add(pays, paidAtMs, async (order, registry) => {
        const recipients = await registry.recipients(order, money.bank_account);
        return paymentEffects(incoming, order, { recipients, callbackTo });
      })
      .catch((error: unknown) => {
        reportFromStore(deps, money.partner, boxes);
        throw error;
      });
    reportPayment(deps, stored, ON_TIME);
    return transactionId;
  };
}

/** After a failure of the store: it may have stored the payment, and only its answer was lost. */
export function reportFromStore(
  { hub, dispatcher }: Pick<ReceivePaymentDeps, 'hub' | 'dispatcher'>,
  partner: string,
  boxes: readonly KnownBox[],
): void {
  hub.resendFromStore(boxes.map(({ terminalCode }) => terminalCode));
  dispatcher.wake(partner);
}

/** Reports a stored payment to its boxes and its partner. */
export function reportPayment(
  { hub, dispatcher, changes, log, onPaid }: ReceivePaymentDeps,
  { payment, notices, callback, withdrawn }: StoredPayment,
  sides: CreditSides,
): void {
  log.info('payment', { transactionId: payment.id, orderId: payment.order_id, amount: payment.amount });
  for (const { terminal_code, push_id, told_at_ms } of notices) {
    if (told_at_ms === null) hub.resendFromStore([terminal_code]);
    else hub.sendPayment(terminal_code, { ...payment, push_id, repeated: false, ...sides });
  }
  const isPaid = sides.due === null || sides.due.paid > sides.due.amount;
  for (const { id, terminal_code } of withdrawn) hub.withdrawPush(terminal_code, id, isPaid ? 'paid' : 'cancelled');
  if (callback !== undefined) dispatcher.wake(payment.partner);
  onPaid?.(payment);
  changes.publish('payments', 'orders', 'callbacks');
}
