import { z } from 'zod';
import { findBank } from '../../../protocol/banks.ts';
import { isObject, issuesOf } from '../../../protocol/codec.ts';
import { bankAccount, LIMITS } from '../../../protocol/fields.ts';
import { VIRTUAL_ACCOUNTS_MAX, virtualAccounts } from '../../../protocol/virtual-accounts.ts';
import {
  areGuessable,
  decodeHook,
  LIMITED,
  missingProof,
  refused,
  refusedUnproved,
  SUCCESS,
  sourceName,
  sourceSecret,
} from './fields.ts';
import { apiUrl } from './list.ts';
import {
  type Access,
  cancelQr,
  creditOf,
  fieldsIn,
  isSigned,
  linkId,
  lookAt,
  makeQr,
  PAID,
  said,
  signedText,
  transfer,
} from './payos-api.ts';
import type { AskSource, Heard, Listed, Period, Proof, QrMaker, Source, SourceKind } from './source.ts';

/** The order number of payOS's test call. No transfer has its text. */
const TEST_ORDER = 123;
const TEST_TEXTS = ['VQRIO123', 'Ma giao dich thu nghiem'];
const ISSUED = { form: /^[0-9a-f]{64}$/i, expected: 'the key as payOS makes it, 64 hexadecimal digits' };
/** How many accounts one channel of payOS serves. */
const ACCOUNTS_MAX = 1_000;

const qr = z.strictObject({
  accounts: z.array(bankAccount).min(1).max(ACCOUNTS_MAX).describe('payOS makes the QRs of their orders'),
  virtualAccounts: z
    .array(
      z.strictObject({
        bankCode: z.string().refine((it) => findBank(it) !== undefined, 'expected the short name of a bank or a BIN'),
        begins: virtualAccounts.shape.begins,
      }),
    )
    .max(VIRTUAL_ACCOUNTS_MAX)
    .default([])
    .describe('to which its QRs may pay beside the account itself, by bank and first characters'),
  pageUrl: z
    .url({ protocol: /^https$/, error: 'expected an https:// address' })
    .max(LIMITS.urlMax)
    .describe("where payOS's own payment page leads back to; boxes show only the QR"),
});

const options = z
  .strictObject({
    kind: z.literal('payos'),
    name: sourceName,
    checksumKey: sourceSecret,
    clientId: sourceSecret.optional(),
    apiKey: sourceSecret.optional(),
    api: z.strictObject({ url: apiUrl('https://api-merchant.payos.vn') }).prefault({}),
    qr: qr.optional().describe('has payOS make the QRs of orders (PROTOCOL.md, clause PQR)'),
  })
  .refine((it) => it.qr === undefined || (it.clientId !== undefined && it.apiKey !== undefined), {
    path: ['qr'],
    error: 'expected clientId and apiKey beside it',
  });

/** payOS signs every key of the data. A record of zod would lose `__proto__`, so the object stays as it is. */
const webhook = z.object({
  data: z.custom<Record<string, unknown>>(isObject, 'expected an object').optional(),
  signature: z.string().optional(),
});

const paidTransfer = transfer.extend({ orderCode: z.int().min(0), paymentLinkId: linkId, code: z.string() });
/** The data itself must have these fields. A currency in the signed text alone may be the payer's word. */
const paidData = paidTransfer.extend({ currency: z.literal(['VND', ''], { error: 'expected VND' }).nullish() });

/** payOS (PROTOCOL.md, clauses SRC-22, SRC-23 and PQR). */
export const payos: SourceKind<typeof options> = {
  kind: 'payos',
  manual: {
    atProvider: 'webhook address `/hooks/{name}`; its test order 123 is answered, not announced',
    proof: '`checksumKey`',
    catchUp: '`clientId`, `apiKey`; it can also make the QRs, see below',
  },
  options,
  isKeyGiven: () => true,
  withKey: (given, checksumKey) => ({ ...given, checksumKey }),
  proofs: ({ checksumKey }) => proofsOf(checksumKey),
  open: ({ kind, name, checksumKey, clientId, apiKey, api, qr }): Source => {
    const access: Access | undefined =
      clientId === undefined || apiKey === undefined
        ? undefined
        : { url: api.url, checksumKey, headers: { 'x-client-id': clientId, 'x-api-key': apiKey } };
    return {
      name,
      isAskedByOrder: true,
      kind,
      success: SUCCESS,
      limited: LIMITED,
      isGuessable: () => areGuessable(proofsOf(checksumKey)),
      list: access && ((period, ask) => listOf(access, period, ask)),
      maker: access && qr && makerOf(access, qr),
      hear: (request): Heard => {
        if (request.path !== '') return refusedUnproved('path: expected nothing after the name of the source');
        const told = decodeHook(webhook, request);
        if (!told.ok) return refusedUnproved(told.reason);
        const { data, signature } = told.value;
        if (data === undefined || signature === undefined) {
          const missing = data === undefined ? 'data' : 'signature';
          const proof = `${missing} is missing: expected data and its signature in the body`;
          return refused(401, missingProof(proof, { setUp: 'kind payos', headers: request.headers }));
        }
        if (isSigned(checksumKey, data, signature)) return heardIn(data);
        return refused(401, 'signature: does not fit data and checksumKey');
      },
    };
  },
};

function proofsOf(checksumKey: string): Proof[] {
  return [{ at: ['checksumKey'], secret: checksumKey, issued: ISSUED }];
}

function makerOf(access: Access, { accounts, virtualAccounts, pageUrl }: z.output<typeof qr>): QrMaker {
  return {
    accounts,
    virtualAccounts: virtualAccounts.map(({ bankCode, begins }) => ({
      bin: findBank(bankCode)?.bin ?? bankCode,
      begins,
    })),
    make: (request, ask) => makeQr(access, pageUrl, request, ask),
    cancel: (orderCode, ask) => cancelQr(access, orderCode, ask),
    look: async (orderCode, ask) =>
      (await lookAt(access, orderCode, ask)) ?? { isOver: true, listed: { credits: [], unread: [] } },
  };
}

function heardIn(data: Record<string, unknown>): Heard {
  const given = paidData.safeParse(Object.fromEntries(Object.entries(data).map(([key, it]) => [key, said(it)])));
  if (!given.success) return refused(400, issuesOf(given.error));
  // The fields come from the signed text, because the signature does not cover where they end in the data.
  const { amount: sum, orderCode: number, ...texts } = fieldsIn(signedText(data));
  const read = paidTransfer.safeParse({ ...texts, amount: Number(sum), orderCode: Number(number) });
  if (!read.success) return refused(400, issuesOf(read.error));
  const { orderCode, code, amount, description } = read.data;
  const ignored = (why: string): Heard => ({ kind: 'told', credits: [], ignored: [`order ${orderCode}: ${why}`] });
  if (orderCode === TEST_ORDER && TEST_TEXTS.includes(description)) return ignored('a test call');
  if (code !== PAID) return ignored(`not paid, code ${code}`);
  if (amount === 0) return ignored('no money');
  return { kind: 'told', credits: [creditOf(read.data, read.data)], ignored: [] };
}

/** Asks about each unpaid order, because payOS has no list of transfers. */
async function* listOf(access: Access, { orders }: Period, ask: AskSource): AsyncGenerator<Listed> {
  for (const orderCode of new Set(orders.map((it) => it.orderCode ?? numberIn(it.orderId)))) {
    const seen = orderCode === undefined ? undefined : await lookAt(access, orderCode, ask);
    if (seen !== undefined) yield seen.listed;
  }
}

/** Returns an orderId as a number: a partner may have made its order at payOS under the same number. */
function numberIn(orderId: string): number | undefined {
  return /^[1-9]\d{0,14}$/.test(orderId) ? Number(orderId) : undefined;
}
