import { findBank } from '../../protocol/banks.ts';
import { checkSum, equalSecrets } from '../../protocol/checksum.ts';
import { LIMITS } from '../../protocol/fields.ts';
import { type SendQrRequest, sendQrRequest } from '../../protocol/http-api.ts';
import { decodeVietQr, type VietQr } from '../../protocol/vietqr.ts';
import { decodeBody } from '../common/decode.ts';
import type { Account, Box, Directory, Partner } from '../common/directory.ts';
import { accept, type Result, refuse } from '../common/result.ts';
import type { PaymentRequestRow } from '../store/schema/tables.ts';
import { EXPECTED } from './expected.ts';

/** A valid push. Only the box itself may still refuse it. */
export interface Sendable {
  request: SendQrRequest;
  amount: number;
  account: Account;
  box: Box;
  qr: VietQr;
  /** How long the QR can still be paid. */
  payableMs: number;
}

export interface SendQrDeps {
  directory: Directory;
  /** Returns the request of the source that made this QR for an order of this account. */
  madeFor(bankAccount: string, qrCode: string): Promise<PaymentRequestRow | undefined>;
  nowMs: number;
}

/** Checks a send-qr request in the order of PROTOCOL.md, clause SND-2, except whether the box is connected. */
export async function decideSendQr(
  json: unknown,
  partner: Partner,
  { directory, madeFor, nowMs }: SendQrDeps,
): Promise<Result<Sendable>> {
  const decoded = decodeBody(sendQrRequest, json);
  if (!decoded.ok) return decoded;
  const request = decoded.value;
  if (request.terminalCode === '' && request.serialNumber === '') {
    return refuse('E46', 'terminalCode or serialNumber: expected one of them');
  }
  const amount = wholeAmount(request.amount);
  if (amount === undefined) return refuse('E02', EXPECTED.amount);
  if (!equalSecrets(request.checkSum, checkSum(partner.password, request))) {
    return refuse('E39', 'checkSum: expected the lower-case MD5 of password, bankAccount, amount and bankCode as sent');
  }

  const account = await directory.account(request.bankAccount);
  if (account === undefined || account.disabled) {
    return refuse('E36', 'bankAccount: expected an account in the system that is not disabled');
  }
  if (account.partner !== partner.username) return refuse('E77', EXPECTED.ownAccount);
  const bank = findBank(request.bankCode);
  if (bank === undefined) return refuse('E24', EXPECTED.bankCode);
  if (bank.bin !== account.bank.bin) return refuse('E51', EXPECTED.ownBank);

  const box = await directory.boxNamed(request.terminalCode, request.serialNumber);
  if (box === undefined) return refuse('E35', 'terminalCode, serialNumber: expected those of one box in the system');
  if (box.account === undefined)
    return refuse('E36', 'terminalCode, serialNumber: expected a box that is linked to an account');

  const qr = decodeVietQr(request.qrCode, account.walletIds);
  if (!qr.ok) return refuse('QR_INVALID', `qrCode: ${qr.reason}`);
  const made = await madeFor(account.bankAccount, request.qrCode);
  const mismatch = mismatchOf(qr.value, account, { linked: box.account, isMade: made !== undefined });
  if (mismatch !== undefined) return refuse('QR_MISMATCH', mismatch);
  if (qr.value.amount === undefined) {
    return refuse('QR_STATIC', 'qrCode: expected a QR with an amount, as generate makes it for qrType 0 and 3');
  }
  if (qr.value.amount !== amount) return refuse('QR_MISMATCH', 'qrCode: expected the amount of the push in the QR');
  const payableMs = made === undefined ? Number.POSITIVE_INFINITY : made.expires_at_ms - nowMs;
  if (payableMs <= 0 || (made?.ended_at_ms ?? null) !== null) {
    return refuse('QR_ENDED', 'qrCode: expected one for which its provider still takes money; generate a new one');
  }
  const { confirm = 'sent' } = box;
  if (box.dialect === 'vietqr' && confirm !== 'sent') {
    return refuse('BOX_CONFIRMS_NOTHING', `confirm: ${confirm} of the box; only sent is possible with dialect vietqr`);
  }
  return accept({ request, amount, account, box, qr: qr.value, payableMs });
}

/** Reads a string of digits without a leading zero, within clause LIM-1. */
function wholeAmount(text: string): number | undefined {
  const amount = /^[1-9]\d{0,12}$/.test(text) ? Number(text) : 0;
  return amount >= 1 && amount <= LIMITS.amountMax ? amount : undefined;
}

function mismatchOf(
  qr: VietQr,
  account: Account,
  { linked, isMade }: { linked: string; isMade: boolean },
): string | undefined {
  if (!isMade && (qr.service !== 'account' || qr.account !== account.bankAccount))
    return 'qrCode: expected the bankAccount of the push in the QR, and no card';
  if (linked !== account.bankAccount)
    return 'terminalCode, serialNumber: expected a box that is linked to this bankAccount';
  // A QR of a source may pay to a virtual account at another bank. The gateway checked that when the source made it.
  if (isMade) return undefined;
  return qr.bin === account.bank.bin ? undefined : 'qrCode: expected the bank of this account in the QR';
}
