import type { Bank } from '../../protocol/banks.ts';
import { findBank } from '../../protocol/banks.ts';
import { MAGIC_PREFIX } from '../../protocol/faults.ts';
import { amountVnd, bankAccount, LIMITS } from '../../protocol/fields.ts';
import { type GenerateRequest, generateRequest } from '../../protocol/http-api.ts';
import { encodeVietQr } from '../../protocol/vietqr.ts';
import { decodeBody } from '../decode.ts';
import type { Directory } from '../directory.ts';
import { accept, type Result, refuse } from '../result.ts';
import type { CallNotes } from './call-notes.ts';
import { isTestable, withCode } from './content.ts';
import { EXPECTED } from './expected.ts';
import { namesOnly } from './matching.ts';

const CONTENT = /^[A-Za-z0-9 .,\-_/:#]*$/;
/** The name of a store, beside which a box has a terminalCode of its own (PROTOCOL.md, clause LEN-5). */
const STORE_CODE = /^(?!VVB)[A-Za-z0-9][\w.-]{0,63}$/i;

/**
 * A valid request with its QR. `amount` is `undefined` for a static QR, which is no order (PROTOCOL.md, clause GEN-7).
 */
export interface Generated {
  request: GenerateRequest;
  bank: Bank;
  amount: number | undefined;
  transType: 'C' | 'D';
  /** As in the QR. */
  content: string;
  /** The code in the content, if it has one. */
  code: string | undefined;
  qrCode: string;
  /** True if the content orders a fault. Only a sandbox takes such orders (PROTOCOL.md, clause FLT-4). */
  isMagic: boolean;
}

export interface GenerateDeps {
  directory: Directory;
  sandbox: boolean;
  notes: CallNotes;
  /** Makes the code that goes before a content of this account; `undefined` for none (PROTOCOL.md, clauses GEN-9 and GEN-10). */
  makeCode(bankAccount: string, isOrder: boolean): Promise<string | undefined>;
}

/** Whether a source may make the QR of this order: not that of a debit, nor one whose content orders a fault. */
export function isForMaker(it: Generated): it is Generated & { amount: number } {
  return it.amount !== undefined && it.transType === 'C' && !it.isMagic;
}

/** Fields that a qrType requires beside those of every request (PROTOCOL.md, clause GEN-1). */
const REQUIRED_BY_TYPE = {
  0: ['amount', 'orderId', 'transType'],
  1: ['terminalCode'],
  3: ['amount', 'terminalCode', 'serviceCode'],
} as const;
/** Fields of type 0 that may be missing, and the note (PROTOCOL.md, clause LEN-4). */
const MISSING: Partial<Record<string, string>> = {
  orderId: 'orderId: missing, the order has none',
  transType: 'transType: missing, taken as C',
};

/**
 * Checks a generate request and makes its QR (PROTOCOL.md, clauses GEN-1 to GEN-6). Returns undefined where the code does
 * not go with the content: another one will.
 */
export async function generate(
  json: unknown,
  { directory, sandbox, notes, makeCode }: GenerateDeps,
): Promise<Result<Generated> | undefined> {
  const decoded = decodeBody(generateRequest, json);
  if (!decoded.ok) return decoded;
  const request = decoded.value;
  const missing = REQUIRED_BY_TYPE[request.qrType].find((field) => {
    return isMissing(request, field) && !(field in MISSING && notes.takes(MISSING[field] ?? ''));
  });
  if (missing !== undefined) return refuse('E46', `${missing}: expected for qrType ${request.qrType}`);

  const amount = request.qrType === 1 ? undefined : request.amount;
  if (amount !== undefined && !amountVnd.safeParse(amount).success) return refuse('E02', EXPECTED.amount);
  const transType = request.transType ?? 'C';
  if (transType !== 'C' && transType !== 'D') return refuse('E03', EXPECTED.transType);
  if (!bankAccount.safeParse(request.bankAccount).success) return refuse('E10', EXPECTED.bankAccount);
  const bank = findBank(request.bankCode);
  if (bank === undefined) return refuse('E24', EXPECTED.bankCode);
  // A content that orders a fault has no room for a code.
  const isMagic = sandbox && request.content.startsWith(MAGIC_PREFIX);
  const code = isMagic ? undefined : await makeCode(request.bankAccount, amount !== undefined);
  const hasCode = code !== undefined;
  if (request.content.length > LIMITS.contentMax) {
    return refuse('E26', `content: expected at most ${LIMITS.contentMax} characters`);
  }
  const content = hasCode ? withCode(request.content, code) : request.content;
  if (hasCode && !content.endsWith(request.content.trimEnd())) {
    notes.warn(`the content is cut to the ${LIMITS.contentMax} characters of a QR: its code finds the order`);
  }
  if (!CONTENT.test(content)) {
    return refuse('E34', 'content: expected letters without accents, digits, spaces and . , - _ / : # only');
  }
  if (code !== undefined) {
    if (!namesOnly(content.slice(code.length))) return refuse('E09', `content: ${EXPECTED.uncoded}`);
    if (!namesOnly(content, code)) return undefined;
  }
  const { terminalCode = '' } = request;
  if (terminalCode !== '' && (await directory.box(terminalCode)) === undefined) {
    const isTaken = STORE_CODE.test(terminalCode) && notes.takes('terminalCode: the code of a store, not of a box');
    if (!isTaken) return refuse('E35', `terminalCode: expected ${expectedCode(terminalCode, notes)}`);
  }
  warnOfContent(content, hasCode, notes);

  const qrCode = encodeVietQr({
    bin: bank.bin,
    account: request.bankAccount,
    service: 'account',
    initiation: request.qrType === 1 ? 'static' : 'dynamic',
    amount,
    ...(content === '' ? {} : { purpose: content }),
  });
  return accept({ request, bank, amount, transType, content, code, qrCode, isMagic });
}

function expectedCode(given: string, { isStrict }: CallNotes): string {
  const ofBox = 'that of a box in the system, as VVB000001';
  const isBox = isStrict || /^VVB/i.test(given);
  return isBox ? ofBox : `${ofBox}, or of a store: 1 to 64 letters, digits and _ . - without accents and spaces`;
}

/** Warns of a content that the test callback will refuse (PROTOCOL.md, clause GEN-8). */
function warnOfContent(content: string, hasCode: boolean, notes: CallNotes): void {
  if (isTestable(content) || (hasCode && !notes.isStrict)) return;
  const takes = `1 to ${LIMITS.testCallbackContentMax} letters, digits and spaces`;
  notes.warn(`content: the test callback will answer 009 to this one, it takes ${takes}`);
}

/** An empty orderId or terminalCode counts as missing. A wrong transType has its own error code. */
function isMissing(request: GenerateRequest, field: (typeof REQUIRED_BY_TYPE)[0 | 1 | 3][number]): boolean {
  const value = request[field];
  return value === undefined || (value === '' && field !== 'transType');
}
