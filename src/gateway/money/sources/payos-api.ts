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
/** payOS accepts no money for an order in one of these statuses. */
const OVER: readonly string[] = ['PAID', 'CANCELLED', 'EXPIRED', 'FAILED'];
/** The field that a payer writes. In the sorted text it stands right before `FIRST_AFTER`. */
const PAYERS_FIELD = 'description';
/** The first field after it that the gateway reads and that all data has. */
const FIRST_AFTER = 'orderCode';
const CANCELLED_BECAUSE = 'The order has ended';

/** The address and the keys of the payOS API. */
export interface Access {
  url: string;
  checksumKey: string;
  headers: Record<string, string>;
}

/** One transfer, as webhooks and the answer about an order write it. */
export const transfer = z.object({
  amount: toldAmount.min(0),
  accountNumber: toldAccount,
  virtualAccountNumber: toldAccountOrNot,
  description: toldText,
  reference: toldReference,
  transactionDateTime: bankTime,
});

/** The id of a payment request at payOS. */
export const linkId = z.string().trim().min(1).max(LIMITS.referenceNumberMax);

/** The envelope of every answer. Only an answer about an order has data. */
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

/** Returns '' for null, `null` and `undefined`. payOS signs them as nothing, so they must mean nothing. */
export function said(value: unknown): unknown {
  return value === null || value === 'null' || value === 'undefined' ? '' : value;
}

/** Returns whether payOS signed this data. */
export function isSigned(key: string, data: Record<string, unknown>, signature: unknown): boolean {
  return typeof signature === 'string' && equalSecrets(signatureOf(key, data), signature.toLowerCase());
}

/**
 * Returns the text that payOS signs: the sorted `key=value` of the data, joined by `&`. Values are not encoded; arrays
 * are JSON.
 */
export function signedText(data: Record<string, unknown>): string {
  const fields = Object.entries(sortedByKey(data)).map(([name, value]) => {
    const items = Array.isArray(value) ? value.map((it: unknown) => (isObject(it) ? sortedByKey(it) : it)) : undefined;
    return `${name}=${items === undefined ? String(said(value)) : JSON.stringify(items)}`;
  });
  return fields.join('&');
}

function signatureOf(key: string, data: Record<string, unknown>): string {
  return createHmac('sha256', key).update(signedText(data), 'utf8').digest('hex');
}

/**
 * Reads the fields back from a signed text. Other data may sign the same text if a value contains `&key=`. Read from
 * the text, all such data gives the same fields. The payer's field reaches as far as it can: up to the last place where
 * the next field may begin (PROTOCOL.md, clause SRC-22).
 */
export function fieldsIn(text: string): Record<string, string> {
  const fields = text.split(/&(?=[\w.-]+=)/).map((it): [name: string, value: string] => {
    const at = it.indexOf('=');
    return [it.slice(0, at), it.slice(at + 1)];
  });
  const after = fields.findLastIndex(([name]) => name === FIRST_AFTER);
  const payers = fields.findIndex(([name]) => name === PAYERS_FIELD);
  const before = fields.slice(0, payers === -1 ? after : payers + 1);
  // The first of two fields with one name must win, because a payer may write the name too. `fromEntries` keeps the last,
  // so the fields are reversed.
  return Object.fromEntries([
    ...before.filter(([name]) => name <= PAYERS_FIELD).reverse(),
    ...fields.slice(after).filter(([name]) => name > PAYERS_FIELD),
  ]);
}

/**
 * Returns the credit of a transfer. Several transfers may pay one order, so the order's number alone does not identify
 * a credit.
 */
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

/**
 * Asks payOS for the state of an order. Returns undefined if payOS does not know the order. Throws for an undocumented
 * answer.
 */
export async function lookAt(
  { url, checksumKey, headers }: Access,
  orderCode: number,
  ask: AskSource,
): Promise<{ isOver: boolean; listed: Listed } | undefined> {
  const answer = await ask(`${url}/v2/payment-requests/${orderCode}`, { headers });
  if (answer.status === NOT_FOUND) return undefined;
  const { code, data, signature } = decodeAnswer(answer, answerOf);
  // The gateway has orders that payOS does not know.
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
 * Asks payOS to make the QR of an order. Throws for an undocumented answer, for one that the key did not sign, and if
 * order, amount or payee of the QR differ from the request and the answer (PROTOCOL.md, clause PQR-2).
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
  { orderCode, amount }: { orderCode: number; amount: number },
): string | undefined {
  if (made.orderCode !== orderCode) return 'orderCode';
  if (made.amount !== amount || qr.amount !== amount) return 'amount';
  return qr.account === made.accountNumber && qr.bin === made.bin ? undefined : 'account';
}

/** Cancels the QR of an order. payOS may refuse this for an order that has ended; `lookAt` shows its state. */
export async function cancelQr({ url, headers }: Access, orderCode: number, ask: AskSource): Promise<void> {
  const body = JSON.stringify({ cancellationReason: CANCELLED_BECAUSE });
  const { status } = await ask(`${url}/v2/payment-requests/${orderCode}/cancel`, { method: 'POST', headers, body });
  if (status >= 500 || status === 401 || status === 403 || status === 429) {
    throw new Error(`payOS answered the cancel of order ${orderCode} with HTTP ${status}`);
  }
}
