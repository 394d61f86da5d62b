import type { TransactionSync } from '../../protocol/http-api.ts';
import type { Due } from '../../protocol/messages.ts';
import type { CallbackConfig } from '../config/callback-config.ts';
import type { Deliveries, PaymentEffects } from '../store/repositories/payments.ts';
import type { Recipients } from '../store/repositories/registry.ts';
import type { NewPayment, OrderRow, PaymentDetails } from '../store/schema/tables.ts';
import { callbackBody } from './callback-body.ts';

/** A payment whose order is not yet known. */
export interface Incoming extends Delivering {
  money: PaymentDetails;
  bankCode: string;
  transactionId: string;
  referenceNumber: string;
  paidAtMs: number;
}

interface Delivering {
  callbackId: string;
  /** When the first notices are sent. The default is the time of the payment. */
  toldAtMs?: number;
  /** True (the default) if a box may replace the QR of the order by the payment. */
  isOverQr?: boolean;
  /** The due of the order after this payment, or null for nothing. */
  due?: Due | null;
  /** Returns whether this box is connected. */
  isOnline(terminalCode: string): boolean;
}

/** The boxes and the partner that receive a payment. */
export interface Audience {
  recipients: Recipients;
  callbackTo: CallbackConfig | undefined;
}

/**
 * Returns a payment for this order, or for none, with its deliveries (PROTOCOL.md, clauses CBK-4 to CBK-7 and SYN-2).
 */
export function paymentEffects(
  { money, bankCode, transactionId, referenceNumber, paidAtMs, ...how }: Incoming,
  order: OrderRow | undefined,
  audience: Audience,
): PaymentEffects {
  const payment = {
    id: transactionId,
    partner: money.partner,
    order_ref: order?.id ?? null,
    order_id: order?.order_id ?? '',
    reference_number: referenceNumber,
    bank_account: money.bank_account,
    bank_code: bankCode,
    amount: money.amount,
    content: money.content,
    trans_type: money.trans_type,
    paid_at_ms: paidAtMs,
  };
  return { payment, ...deliveriesFor(payment, order, audience, how) };
}

/** Returns the notices and the callback of a payment (PROTOCOL.md, clauses CBK-7 and SYN-2). */
export function deliveriesFor(
  payment: NewPayment,
  order: OrderRow | undefined,
  { recipients, callbackTo: to }: Audience,
  { callbackId, isOnline, isOverQr = true, due = null, toldAtMs = payment.paid_at_ms }: Delivering,
): Deliveries {
  const payload: TransactionSync = {
    transactionid: payment.id,
    transactiontime: payment.paid_at_ms,
    referencenumber: payment.reference_number,
    amount: payment.amount,
    content: payment.content,
    bankaccount: payment.bank_account,
    transType: payment.trans_type,
    orderId: payment.order_id,
    sign: order?.sign ?? '',
    terminalCode: terminalOf(order, recipients),
    urlLink: order?.url_link ?? '',
    serviceCode: order?.service_code ?? '',
    subTerminalCode: order?.sub_terminal_code ?? '',
    ...(due === null ? {} : { orderAmount: due.amount, orderPaid: due.paid }),
  };
  const callback = to && { id: callbackId, url: to.url, body: callbackBody(payload, to) };
  const notices = noticesOf(payment, order, recipients).map(({ terminal_code, push_id }) => ({
    terminal_code,
    push_id: isOverQr ? push_id : null,
    told_at_ms: isOnline(terminal_code) ? toldAtMs : null,
  }));
  return { notices, callback };
}

/** Returns the store that the partner named, else the box that showed the order, else the box of the order. */
function terminalOf(order: OrderRow | undefined, recipients: Recipients): string {
  if (order === undefined) return '';
  const { shown_on, terminal_code } = order;
  const isStore = terminal_code !== '' && !recipients.isBox(terminal_code);
  return isStore ? terminal_code : (shown_on ?? terminal_code);
}

/** Returns notices for the boxes that announce a payment (PROTOCOL.md, clause CBK-7). */
function noticesOf(
  payment: NewPayment,
  order: OrderRow | undefined,
  { box, boxes }: Recipients,
): { terminal_code: string; push_id: string | null }[] {
  if (payment.trans_type === 'D') return [];
  if (box !== undefined) return [{ terminal_code: box, push_id: order?.shown_push_id ?? null }];
  return boxes.map((terminal_code) => ({ terminal_code, push_id: null }));
}
