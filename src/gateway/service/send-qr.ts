import { findBank } from '../../protocol/banks.ts';
import { checkSum, equalSecrets } from '../../protocol/checksum.ts';
import { LIMITS } from '../../protocol/fields.ts';
import { type SendQrRequest, sendQrRequest } from '../../protocol/http-api.ts';
import { decodeVietQr, type VietQr } from '../../protocol/vietqr.ts';
import type { BoxConfig, PartnerConfig } from '../config.ts';
import { decodeBody } from '../decode.ts';
import type { Account, Directory } from '../directory.ts';
import { accept, type Result, refuse } from '../result.ts';

/** A valid push: only the box itself may still refuse it. */
export interface Sendable {
  request: SendQrRequest;
  amount: number;
  account: Account;
  box: BoxConfig;
  qr: VietQr;
}

/** Checks a send-qr request in the order of PROTOCOL.md, clause SND-2, up to whether the box is connected. */
export function decideSendQr(json: unknown, partner: PartnerConfig, directory: Directory): Result<Sendable> {
  const decoded = decodeBody(sendQrRequest, json);
  if (!decoded.ok) return decoded;
  const request = decoded.value;
  if (request.terminalCode === '' && request.serialNumber === '') {
    return refuse('E46', 'terminalCode or serialNumber: one of them is required');
  }
  const amount = wholeAmount(request.amount);
  if (amount === undefined) return refuse('E02', 'amount');
  if (!equalSecrets(request.checkSum, checkSum(partner.password, request))) return refuse('E39', 'checkSum');

  const account = directory.account(request.bankAccount);
  if (account === undefined) return refuse('E36', 'bankAccount is not in the system');
  if (account.partner !== partner.username) return refuse('E77', 'bankAccount is not of this partner');
  const bank = findBank(request.bankCode);
  if (bank === undefined) return refuse('E24', 'bankCode');
  if (bank.bin !== account.bank.bin) return refuse('E51', 'bankCode is not the bank of the account');

  const box = directory.boxNamed(request.terminalCode, request.serialNumber);
  if (box === undefined) return refuse('E35', 'terminalCode and serialNumber name no box');
  if (box.account === undefined) return refuse('E36', 'the box has no linked account');

  const qr = decodeVietQr(request.qrCode);
  if (!qr.ok) return refuse('QR_INVALID', `tag ${qr.tag}: ${qr.reason}`);
  const mismatch = mismatchOf(qr.value, account, amount, box.account);
  if (mismatch !== undefined) return refuse('QR_MISMATCH', mismatch);
  const { confirm = 'sent' } = box;
  if (box.dialect === 'vietqr' && confirm !== 'sent') {
    return refuse('BOX_CONFIRMS_NOTHING', `confirm: ${confirm} of the box; only sent is possible with dialect vietqr`);
  }
  return accept({ request, amount, account, box, qr: qr.value });
}

/** Reads a string of digits without a leading zero, within clause LIM-1. */
function wholeAmount(text: string): number | undefined {
  const amount = /^[1-9]\d{0,12}$/.test(text) ? Number(text) : 0;
  return amount >= 1 && amount <= LIMITS.amountMax ? amount : undefined;
}

function mismatchOf(qr: VietQr, account: Account, amount: number, linked: string): string | undefined {
  if (qr.service !== 'account' || qr.account !== account.bankAccount) return 'the QR has another account';
  if (linked !== account.bankAccount) return 'the box is linked to another account';
  if (qr.bin !== account.bank.bin) return 'the QR has another bank';
  if (qr.amount === undefined) return 'the QR has no amount';
  return qr.amount === amount ? undefined : 'the QR has another amount';
}
