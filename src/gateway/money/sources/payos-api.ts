import { createHmac } from 'node:crypto';
import { z } from 'zod';
import { equalSecrets } from '../../../protocol/checksum.ts';
import { isObject, issuesOf } from '../../../protocol/codec.ts';
import { LIMITS } from '../../../protocol/fields.ts';
import { decodeVietQr, type VietQr } from '../../../protocol/vietqr.ts';
import {
  bankTime,
  eachOf,
  sortedByKey,
  toldAccount,
  toldAccountOrNot,
  toldAmount,
  toldReference,
  toldText,
} from './fields.ts';
import { decodeAnswer } from './list.ts';
import type { AskSource, Credit, Listed, MadeQr, NewRequest } from './source.ts';

export const PAID = '00';
const NOT_FOUND = 404;
/** Statuses after which payOS takes no money for an order. */
const OVER: readonly string[] = ['PAID', 'CANCELLED', 'EXPIRED', 'FAILED'];
/** The field that a payer writes. It stands between the fields that are sorted before it and `FIRST_AFTER`. */
const PAYERS_FIELD = 'description';
/** The first field after it that is read, and that all data has. */
const FIRST_AFTER = 'orderCode';
const CANCELLED_BECAUSE = 'The order has ended';

/** Where and with what payOS is asked. */
export interface Access {
  url: string;
  checksumKey: string;
  headers: Record<string, string>;
}

/** One transfer, as webhooks and the answer about an order have it. */
export const transfer = z.object({
  amount: toldAmount.min(0),
  accountNumber: toldAccount,
  virtualAccountNumber: toldAccountOrNot,
  description: toldText,
  reference: toldReference,
  transactionDateTime: bankTime,
});

/** The name of a payment request at payOS. */
export const linkId = z.string().trim().min(1).max(LIMITS.referenceNumberMax);

/** Every answer. Only one about an order has data. */
const answerOf = z.object({
  code: z.string(),
  desc: z.string().nullish(),
  data: z.record(z.string(), z.unknown()).nullish(),
  signature: z.string().nullish(),
});
const orderData = z.object({
  id: linkId,
  orderCode: z.int().min(0),
  status: z.string().nullish(),
  transactions: eachOf(transfer),
});
const madeData = z.object({
  bin: z.string(),
  accountNumber: z.string(),
  amount: z.int(),
  orderCode: z.int(),
  currency: z.literal('VND'),
  qrCode: z.string(),
});

/** Null and these words are signed as nothing, so they must mean nothing. */
export function said(value: unknown): unknown {
  return value === null || value === 'null' || value === 'undefined' ? '' : value;
}

/** Whether payOS has signed this data. */
export function isSigned(key: string, data: Record<string, unknown>, signature: unknown): boolean {
  return typeof signature === 'string' && equalSecrets(signatureOf(key, data), signature.toLowerCase());
}

/** The text that payOS signs: the sorted `key=value` of the data, joined by `&`: not encoded, arrays as JSON. */
export function signedText(data: Record<string, unknown>): string {
  const fields = Object.entries(sortedByKey(data)).map(([name, value]) => {
    const items = Array.isArray(value) ? value.map((it: unknown) => (isObject(it) ? sortedByKey(it) : it)) : undefined;
    return `${name}=${items === undefined ? String(said(value)) : JSON.stringify(items)}`;
  });
  return fields.join('&');
}

/** HMAC-SHA256 over the signed text. */
function signatureOf(key: string, data: Record<string, unknown>): string {
  return createHmac('sha256', key).update(signedText(data), 'utf8').digest('hex');
}

/**
 * The fields of a signed text. Data of other fields may have the same text, if a value has `&key=` in it; read from the
 * text, all of them say the same. What a payer writes is the text from its first to the last that can be no field after it
 * (PROTOCOL.md, clause SRC-22).
 */
export function fieldsIn(text: string): Record<string, string> {
  const fields = text.split(/&(?=[\w.-]+=)/).map((it): [name: string, value: string] => {
    const at = it.indexOf('=');
    return [it.slice(0, at), it.slice(at + 1)];
  });
  const after = fields.findLastIndex(([name]) => name === FIRST_AFTER);
  const payers = fields.findIndex(([name]) => name === PAYERS_FIELD);
  const before = fields.slice(0, payers === -1 ? after : payers + 1);
  // The last entry of a name counts: that of the first that comes before, as a payer may also have a name.
  return Object.fromEntries([
    ...before.filter(([name]) => name <= PAYERS_FIELD).reverse(),
    ...fields.slice(after).filter(([name]) => name > PAYERS_FIELD),
  ]);
}

/** An order may be paid by several transfers, so its number alone is not the key of a credit. */
export function creditOf(it: z.output<typeof transfer>, order: { orderCode: number; paymentLinkId: string }): Credit {
  const key = it.reference === '' ? `${it.transactionDateTime ?? ''}-${it.amount}` : it.reference;
  return {
    sourceId: `${order.paymentLinkId}/${key}`,
    reference: it.reference,
    bankAccount: it.accountNumber,
    virtualAccount: it.virtualAccountNumber,
    amount: it.amount,
    text: it.description,
    bankTimeMs: it.transactionDateTime,
    orderCode: order.orderCode,
  };
}

/** The state of one order at payOS; undefined if it does not know it. Throws when it does not answer as documented. */
export async function lookAt(
  { url, checksumKey, headers }: Access,
  orderCode: number,
  ask: AskSource,
): Promise<{ isOver: boolean; listed: Listed } | undefined> {
  const answer = await ask(`${url}/v2/payment-requests/${orderCode}`, { headers });
  if (answer.status === NOT_FOUND) return undefined;
  const { code, data, signature } = decodeAnswer(answer, answerOf);
  // Not every order of the gateway is one of payOS.
  if (code !== PAID || !isObject(data)) return undefined;
  if (typeof signature === 'string' && !isSigned(checksumKey, data, signature)) {
    throw new Error(`the answer about order ${orderCode}: its signature does not fit checksumKey`);
  }
  const read = orderData.safeParse(data);
  if (!read.success) {
    return { isOver: false, listed: { credits: [], unread: [`order ${orderCode}: ${issuesOf(read.error)}`] } };
  }
  const { id, status, transactions } = read.data;
  const paid = transactions.read.filter(({ amount }) => amount > 0);
  const credits = paid.map((it) => creditOf(it, { orderCode: read.data.orderCode, paymentLinkId: id }));
  const unread = transactions.unread.map((it) => `order ${orderCode}: ${it}`);
  return { isOver: OVER.includes(status ?? ''), listed: { credits, unread } };
}

/**
 * Has payOS make the QR of an order. Throws when it does not answer as documented, when its answer is not signed with the
 * key, and when order, amount or payee of the QR are not those of the request and the answer (PROTOCOL.md, clause PQR-2).
 */
export async function makeQr(
  { url, checksumKey, headers }: Access,
  pageUrl: string,
  { orderCode, amount, description, expiresAtMs }: NewRequest,
  ask: AskSource,
): Promise<MadeQr> {
  const signed = { amount, cancelUrl: pageUrl, description, orderCode, returnUrl: pageUrl };
  const request = {
    ...signed,
    expiredAt: Math.floor(expiresAtMs / 1000),
    signature: signatureOf(checksumKey, signed),
  };
  const how = { method: 'POST', headers, body: JSON.stringify(request), isUrgent: true };
  const answer = decodeAnswer(await ask(`${url}/v2/payment-requests`, how), answerOf, 'payOS');
  const { code, desc, data, signature } = answer;
  if (code !== PAID || !isObject(data)) throw new Error(`payOS made no QR: code ${code}, ${desc ?? 'no reason'}`);
  if (!isSigned(checksumKey, data, signature)) {
    throw new Error('the signature of the QR by payOS does not fit checksumKey');
  }
  const made = madeData.safeParse(data);
  if (!made.success) throw new Error(`the QR by payOS is not as documented: ${issuesOf(made.error)}`);
  const qr = decodeVietQr(made.data.qrCode);
  if (!qr.ok) throw new Error(`the QR by payOS is no VietQR: ${qr.reason}`);
  const problem = mismatchOf(made.data, qr.value, { orderCode, amount });
  if (problem !== undefined) throw new Error(`the QR by payOS has another ${problem} than expected`);
  return { qrCode: made.data.qrCode, qr: qr.value };
}

function mismatchOf(
  made: z.output<typeof madeData>,
  qr: VietQr,
  { orderCode, amount }: Pick<NewRequest, 'orderCode' | 'amount'>,
): string | undefined {
  if (made.orderCode !== orderCode) return 'orderCode';
  if (made.amount !== amount || qr.amount !== amount) return 'amount';
  return qr.account === made.accountNumber && qr.bin === made.bin ? undefined : 'account';
}

/** Takes the QR of an order away. payOS may refuse it for an order that has ended: ask with `lookAt`. */
export async function cancelQr({ url, headers }: Access, orderCode: number, ask: AskSource): Promise<void> {
  const body = JSON.stringify({ cancellationReason: CANCELLED_BECAUSE });
  const { status } = await ask(`${url}/v2/payment-requests/${orderCode}/cancel`, { method: 'POST', headers, body });
  if (status >= 500 || status === 401 || status === 403 || status === 429) {
    throw new Error(`payOS answered the cancel of order ${orderCode} with HTTP ${status}`);
  }
}
