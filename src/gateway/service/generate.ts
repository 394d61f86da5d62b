import type { Bank } from '../../protocol/banks.ts';
import { findBank } from '../../protocol/banks.ts';
import { amountVnd, bankAccount, LIMITS } from '../../protocol/fields.ts';
import { type GenerateRequest, generateRequest } from '../../protocol/http-api.ts';
import { encodeVietQr } from '../../protocol/vietqr.ts';
import { decodeBody } from '../decode.ts';
import type { Directory } from '../directory.ts';
import { accept, type Result, refuse } from '../result.ts';

const CONTENT = /^[A-Za-z0-9 .,\-_/:#]*$/;

/**
 * A valid request with its QR. `amount` is `undefined` for a static QR, which is no order (PROTOCOL.md, clause GEN-7).
 */
export interface Generated {
  request: GenerateRequest;
  bank: Bank;
  amount: number | undefined;
  transType: 'C' | 'D';
  qrCode: string;
}

/** Fields that a qrType requires beside those of every request (PROTOCOL.md, clause GEN-1). */
const REQUIRED_BY_TYPE = {
  0: ['amount', 'orderId', 'transType'],
  1: ['terminalCode'],
  3: ['amount', 'terminalCode', 'serviceCode'],
} as const;

/** Checks a generate request and makes its QR (PROTOCOL.md, clauses GEN-1 to GEN-6). */
export function generate(json: unknown, directory: Directory): Result<Generated> {
  const decoded = decodeBody(generateRequest, json);
  if (!decoded.ok) return decoded;
  const request = decoded.value;
  const missing = REQUIRED_BY_TYPE[request.qrType].find((field) => isMissing(request, field));
  if (missing !== undefined) return refuse('E46', `${missing}: required for qrType ${request.qrType}`);

  const amount = request.qrType === 1 ? undefined : request.amount;
  if (amount !== undefined && !amountVnd.safeParse(amount).success) return refuse('E02', 'amount');
  const transType = request.transType ?? 'C';
  if (transType !== 'C' && transType !== 'D') return refuse('E03', 'transType');
  if (!bankAccount.safeParse(request.bankAccount).success) return refuse('E10', 'bankAccount');
  const bank = findBank(request.bankCode);
  if (bank === undefined) return refuse('E24', 'bankCode');
  if (request.content.length > LIMITS.contentMax) return refuse('E26', 'content is too long');
  if (!CONTENT.test(request.content)) return refuse('E34', 'content has a character that is not allowed');
  const { terminalCode = '' } = request;
  if (terminalCode !== '' && directory.box(terminalCode) === undefined) return refuse('E35', 'terminalCode');

  const qrCode = encodeVietQr({
    bin: bank.bin,
    account: request.bankAccount,
    service: 'account',
    initiation: request.qrType === 1 ? 'static' : 'dynamic',
    amount,
    ...(request.content === '' ? {} : { purpose: request.content }),
  });
  return accept({ request, bank, amount, transType, qrCode });
}

/** An empty orderId or terminalCode counts as missing. A wrong transType has its own error code. */
function isMissing(request: GenerateRequest, field: (typeof REQUIRED_BY_TYPE)[0 | 1 | 3][number]): boolean {
  const value = request[field];
  return value === undefined || (value === '' && field !== 'transType');
}
