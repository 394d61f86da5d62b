import { createHmac } from 'node:crypto';
import { z } from 'zod';
import { equalSecrets } from '../../protocol/checksum.ts';
import { isObject, issuesOf } from '../../protocol/codec.ts';
import {
  bankTime,
  decodeHook,
  eachOf,
  refused,
  SUCCESS,
  sortedByKey,
  sourceName,
  sourceSecret,
  toldAccount,
  toldAmount,
  toldOrNot,
  toldReference,
  toldText,
} from './fields.ts';
import { apiUrl, decodeAnswer } from './list.ts';
import type { AskSource, Credit, Heard, Listed, Period, Source, SourceKind } from './source.ts';

const PAID = '00';
const NOT_FOUND = 404;
/** The order of the call by which payOS tries a hook; its text is that of no transfer. */
const TEST_ORDER = 123;
const TEST_TEXTS = ['VQRIO123', 'Ma giao dich thu nghiem'];

const options = z.strictObject({
  kind: z.literal('payos'),
  name: sourceName,
  checksumKey: sourceSecret,
  clientId: sourceSecret.optional(),
  apiKey: sourceSecret.optional(),
  api: z.strictObject({ url: apiUrl('https://api-merchant.payos.vn') }).prefault({}),
});
type Access = { url: string; checksumKey: string; headers: Record<string, string> };

const webhook = z.object({ data: z.record(z.string(), z.unknown()), signature: z.string() });

const transfer = z.object({
  amount: toldAmount.min(0),
  accountNumber: toldAccount,
  virtualAccountNumber: toldOrNot,
  description: toldText.nullish().transform((it) => it ?? ''),
  reference: toldOrNot,
  transactionDateTime: bankTime,
});

const paidTransfer = transfer.extend({
  orderCode: z.int().min(0),
  paymentLinkId: toldReference.min(1),
  code: z.string(),
});

/** The answer about an order. Only one that is found has data. */
const order = z.object({
  code: z.string(),
  data: z.record(z.string(), z.unknown()).nullish(),
  signature: z.string().nullish(),
});
const orderData = z.object({ id: toldReference.min(1), orderCode: z.int().min(0), transactions: eachOf(transfer) });

/** payOS (PROTOCOL.md, clauses SRC-22 and SRC-23). */
export const payos: SourceKind<typeof options> = {
  kind: 'payos',
  options,
  open: ({ kind, name, checksumKey, clientId, apiKey, api }): Source => ({
    name,
    kind,
    success: SUCCESS,
    list:
      clientId === undefined || apiKey === undefined
        ? undefined
        : (period, ask) => {
            const headers = { 'x-client-id': clientId, 'x-api-key': apiKey };
            return listOf({ url: api.url, checksumKey, headers }, period, ask);
          },
    hear: ({ path, body }): Heard => {
      if (path !== '') return refused(400, 'path: expected nothing after the name of the source');
      const told = decodeHook(webhook, body);
      if (!told.ok) return refused(400, told.reason);
      const { data, signature } = told.value;
      if (!equalSecrets(signatureOf(checksumKey, data), signature)) {
        return refused(401, 'signature: does not fit data and checksumKey');
      }
      return heardIn(Object.fromEntries(Object.entries(data).map(([key, it]) => [key, said(it)])));
    },
  }),
};

/** Null and these words are signed as nothing, so they must mean nothing. */
function said(value: unknown): unknown {
  return value === null || value === 'null' || value === 'undefined' ? '' : value;
}

/** HMAC-SHA256 over the sorted `key=value` of the data, joined by `&`: not encoded, arrays as JSON. */
function signatureOf(key: string, data: Record<string, unknown>): string {
  const text = Object.entries(sortedByKey(data)).map(([name, value]) => {
    const items = Array.isArray(value) ? value.map((it: unknown) => (isObject(it) ? sortedByKey(it) : it)) : undefined;
    return `${name}=${items === undefined ? String(said(value)) : JSON.stringify(items)}`;
  });
  return createHmac('sha256', key).update(text.join('&'), 'utf8').digest('hex');
}

function heardIn(data: Record<string, unknown>): Heard {
  const read = paidTransfer.safeParse(data);
  if (!read.success) return refused(400, issuesOf(read.error));
  const { orderCode, code, amount, description } = read.data;
  const ignored = (why: string): Heard => ({ kind: 'told', credits: [], ignored: [`order ${orderCode}: ${why}`] });
  if (orderCode === TEST_ORDER && TEST_TEXTS.includes(description)) return ignored('a test call');
  if (code !== PAID) return ignored(`not paid, code ${code}`);
  if (amount === 0) return ignored('no money');
  return { kind: 'told', credits: [creditOf(read.data, read.data)], ignored: [] };
}

/** An order may be paid by several transfers, so its number alone is not the key of a credit. */
function creditOf(it: z.output<typeof transfer>, order: { orderCode: number; paymentLinkId: string }): Credit {
  const key = it.reference === '' ? `${it.transactionDateTime}-${it.amount}` : it.reference;
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

/** payOS has no list of transfers: each order that waits for money is asked for. */
async function listOf({ url, checksumKey, headers }: Access, { orderCodes }: Period, ask: AskSource): Promise<Listed> {
  const listed: Listed = { credits: [], unread: [] };
  for (const orderCode of orderCodes) {
    const answer = await ask(`${url}/v2/payment-requests/${orderCode}`, { headers });
    if (answer.status === NOT_FOUND) continue;
    const { code, data, signature } = decodeAnswer(answer, order);
    // Not every order of the gateway is one of payOS.
    if (code !== PAID || !isObject(data)) continue;
    if (typeof signature === 'string' && !equalSecrets(signatureOf(checksumKey, data), signature)) {
      throw new Error(`the answer about order ${orderCode}: its signature does not fit checksumKey`);
    }
    const read = orderData.safeParse(data);
    if (!read.success) {
      listed.unread.push(`order ${orderCode}: ${issuesOf(read.error)}`);
      continue;
    }
    const { id, transactions } = read.data;
    const paid = transactions.read.filter(({ amount }) => amount > 0);
    listed.credits.push(...paid.map((it) => creditOf(it, { orderCode: read.data.orderCode, paymentLinkId: id })));
    listed.unread.push(...transactions.unread.map((it) => `order ${orderCode}: ${it}`));
  }
  return listed;
}
