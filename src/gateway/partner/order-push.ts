import type { ShowBody } from '../../protocol/messages.ts';
import type { NewOrder, NewPush } from '../store/schema/tables.ts';

/** The names in an order that no generate request made. */
export const NO_NAMES = { sub_terminal_code: '', service_code: '', sign: '', url_link: '' };

/** Returns a push of an order in its stored and in its sent form. */
export function pushOf(
  order: NewOrder,
  {
    pushId,
    terminalCode,
    nowMs,
    lifetimeMs,
  }: { pushId: string; terminalCode: string; nowMs: number; lifetimeMs: number },
): { push: NewPush; show: ShowBody } {
  const expiresAtMs = nowMs + lifetimeMs;
  return {
    push: {
      id: pushId,
      order_ref: order.id,
      terminal_code: terminalCode,
      created_at_ms: nowMs,
      expires_at_ms: expiresAtMs,
    },
    show: {
      type: 'show',
      pushId,
      orderId: order.order_id,
      amount: order.amount,
      content: order.content,
      bankAccount: order.bank_account,
      bankCode: order.bank_code,
      userBankName: order.user_bank_name,
      qrCode: order.qr_code,
      expiresAtMs,
      expiresInMs: lifetimeMs,
    },
  };
}
