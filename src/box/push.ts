import { findBank } from '../protocol/banks.ts';
import type { DownOf, Link } from '../protocol/messages.ts';
import { decodeVietQr } from '../protocol/vietqr.ts';
import type { Order } from './entry.ts';
import type { Refusal, Verdict } from './state.ts';

/**
 * Why this box must not show this push, or undefined when it may (PROTOCOL.md, clause AGT-1). The box trusts neither
 * the fields nor the QR alone: both must name the account that is linked to it, and the same amount. `leftMs` is what is
 * left of its lifetime.
 */
export function refusalOf(push: DownOf<'show'>, leftMs: number, link: Link, verdict: Verdict): Refusal | undefined {
  const decoded = decodeVietQr(push.qrCode);
  if (!decoded.ok) return { code: 'QR_INVALID', reason: decoded.reason };
  const qr = decoded.value;
  const mismatch = (what: string, got: string | number | undefined, expected: string | number): Refusal => ({
    code: 'QR_MISMATCH',
    reason: `${what} is ${got ?? 'absent'}, expected ${expected}`,
  });
  const linkedBin = findBank(link.bankCode)?.bin ?? link.bankCode;
  if (push.bankAccount !== link.bankAccount) return mismatch('bankAccount', push.bankAccount, link.bankAccount);
  const pushedBin = findBank(push.bankCode)?.bin;
  if (pushedBin !== linkedBin) return mismatch('bank', pushedBin, linkedBin);
  // A card may have the number of the account.
  if (qr.service !== 'account') return mismatch('service in the QR', qr.service, 'account');
  if (qr.account !== link.bankAccount) return mismatch('account in the QR', qr.account, link.bankAccount);
  if (qr.bin !== linkedBin) return mismatch('bank in the QR', qr.bin, linkedBin);
  if (qr.amount !== push.amount) return mismatch('amount in the QR', qr.amount, push.amount);
  if (leftMs <= 0) return { code: 'WITHDRAWN', reason: 'the push had expired when it arrived' };
  if (!verdict.ok) return { code: verdict.code, reason: verdict.reason };
  return undefined;
}

/** The order that a push asks for; people are told the holder of the linked account, whatever push and QR say (clause AGT-1). */
export function orderOf(push: DownOf<'show'>, holder: Link): Order {
  const { pushId, orderId, amount, content, qrCode, expiresAtMs } = push;
  return { pushId, orderId, amount, content, qrCode, holder, expiresAtMs, lifetimeMs: push.expiresInMs };
}

/**
 * What is left of an order's lifetime at a calendar time, in milliseconds. `undefined` when nothing is left, or more than
 * the whole: then the order is over, or one of the clocks was set.
 */
export function leftMs(order: Order, wallMs: number): number | undefined {
  const left = order.expiresAtMs - wallMs;
  return left > 0 && left <= order.lifetimeMs ? left : undefined;
}
