import { findBank } from '../../protocol/banks.ts';
import type { DownOf, LinkedAccount } from '../../protocol/messages.ts';
import { decodeVietQr, type VietQr } from '../../protocol/vietqr.ts';
import { isAmong } from '../../protocol/virtual-accounts.ts';
import type { Order } from './entry.ts';
import type { QrCheck, Refusal } from './state.ts';

/**
 * Returns why this box must not show this push; undefined when it may (PROTOCOL.md, clause AGT-1). The box trusts
 * neither the fields nor the QR alone: both must name the linked account and the same amount. `leftMs` is the rest of
 * the push's lifetime.
 */
export function refusalOf(
  push: DownOf<'show'>,
  leftMs: number,
  account: LinkedAccount,
  qrCheck: QrCheck,
): Refusal | undefined {
  const decoded = decodeVietQr(push.qrCode, account.walletIds);
  if (!decoded.ok) return { code: 'QR_INVALID', reason: decoded.reason };
  const qr = decoded.value;
  const linkedBin = binOf(account);
  if (push.bankAccount !== account.bankAccount) return mismatch('bankAccount', push.bankAccount, account.bankAccount);
  const pushedBin = findBank(push.bankCode)?.bin;
  if (pushedBin !== linkedBin) return mismatch('bank', pushedBin, linkedBin);
  const foreign = isAmong(account.virtualAccounts ?? [], qr) ? undefined : foreignPayee(qr, account);
  if (foreign !== undefined) return foreign;
  if (qr.amount !== push.amount) return mismatch('amount in the QR', qr.amount, push.amount);
  if (leftMs <= 0) return { code: 'WITHDRAWN', reason: 'the push had expired when it arrived' };
  if (!qrCheck.ok) return { code: qrCheck.code, reason: qrCheck.reason };
  return undefined;
}

/** Returns why a QR without an amount does not belong to this account; undefined when it does. */
export function staticQrProblem(qrCode: string, account: LinkedAccount): string | undefined {
  const decoded = decodeVietQr(qrCode, account.walletIds);
  if (!decoded.ok) return decoded.reason;
  const { value: qr } = decoded;
  const asks = qr.amount === undefined ? undefined : mismatch('amount in the QR', qr.amount, 'none');
  return (foreignPayee(qr, account) ?? asks)?.reason;
}

function foreignPayee(qr: VietQr, account: LinkedAccount): Refusal | undefined {
  const linkedBin = binOf(account);
  // A card may have the same number as the account.
  if (qr.service !== 'account') return mismatch('service in the QR', qr.service, 'account');
  if (qr.account !== account.bankAccount) return mismatch('account in the QR', qr.account, account.bankAccount);
  return qr.bin === linkedBin ? undefined : mismatch('bank in the QR', qr.bin, linkedBin);
}

function binOf({ bankCode }: LinkedAccount): string {
  return findBank(bankCode)?.bin ?? bankCode;
}

function mismatch(what: string, got: string | number | undefined, expected: string | number): Refusal {
  return { code: 'QR_MISMATCH', reason: `${what} is ${got ?? 'absent'}, expected ${expected}` };
}

/**
 * Makes the order of a push. The screen names the holder of the linked account, whatever push and QR say (clause
 * AGT-1).
 */
export function orderOf(push: DownOf<'show'>, account: LinkedAccount): Order {
  const { pushId, orderId, amount, content, qrCode, expiresAtMs } = push;
  const { virtualAccounts: _none, walletIds: _ids, ...holder } = account;
  return { pushId, orderId, amount, content, qrCode, holder, expiresAtMs, lifetimeMs: push.expiresInMs };
}

/** Returns the account that a payer sees in a wallet: that of the QR, which may be a virtual one of the holder. */
export function payeeOf({ qrCode, holder }: Order): Order['holder'] {
  const qr = decodeVietQr(qrCode);
  if (!qr.ok || qr.value.account === holder.bankAccount) return holder;
  return { ...holder, bankAccount: qr.value.account, bankCode: findBank(qr.value.bin)?.code ?? qr.value.bin };
}

/**
 * Returns the milliseconds left of an order's lifetime at a calendar time. Undefined when none are left, or more than
 * the whole lifetime: then the order is over, or somebody set one of the clocks.
 */
export function leftMs(order: Order, wallMs: number): number | undefined {
  const left = order.expiresAtMs - wallMs;
  return left > 0 && left <= order.lifetimeMs ? left : undefined;
}
