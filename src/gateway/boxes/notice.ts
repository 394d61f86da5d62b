import type { DownBody } from '../../protocol/messages.ts';
import type { Notice } from '../store/repositories/payments.ts';

/** What a box is told of a payment, as the store has it (PROTOCOL.md, clause MSG-7). */
export function paymentNotice(payment: Notice): DownBody {
  return {
    type: 'payment',
    transactionId: payment.id,
    pushId: payment.push_id,
    orderId: payment.order_id,
    amount: payment.amount,
    content: payment.content,
    bankAccount: payment.bank_account,
    bankCode: payment.bank_code,
    paidAtMs: payment.paid_at_ms,
    repeated: payment.repeated,
  };
}
