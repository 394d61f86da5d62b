import { createHmac } from 'node:crypto';
import { z } from 'zod';
import { isForm, looksLike } from '../../../lib/bodies.ts';
import { vietnamTime } from '../../../lib/vietnam-time.ts';
import { equalSecrets } from '../../../protocol/checksum.ts';
import { issuesOf } from '../../../protocol/codec.ts';
import { LIMITS } from '../../../protocol/fields.ts';
import {
  areGuessable,
  bankTime,
  decodeHook,
  eachOf,
  headerOf,
  LIMITED,
  missingProof,
  refused,
  refusedUnproved,
  SUCCESS,
  sourceName,
  sourceSecret,
  toldAccount,
  toldAccountOrNot,
  toldAmount,
  toldReference,
  toldText,
  wrongType,
} from './fields.ts';
import { decodeAnswer, eachPage, listApi, PAGE_ROWS } from './list.ts';
import type { AskSource, Credit, Heard, HookRequest, Listed, Period, Proof, Source, SourceKind } from './source.ts';

/** How much a signature's time may differ from now. */
const SIGNATURE_DRIFT_MS_MAX = 300_000;
/** SePay retries a webhook for 33 minutes. */
const RETRIES_MS = 40 * 60_000;

/** The form of the secret that SePay shows once, when a webhook with HMAC-SHA256 is made. */
const ISSUED = {
  form: /^whsec_[0-9a-f]{32,}$/i,
  expected: 'the secret as SePay makes it, whsec_ and hexadecimal digits',
};

const auth = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('apikey'), key: sourceSecret }),
  z.strictObject({ kind: z.literal('hmac'), secret: sourceSecret }),
]);

const options = z.strictObject({
  kind: z.literal('sepay'),
  name: sourceName,
  auth,
  api: listApi('https://userapi.sepay.vn'),
});
type Api = NonNullable<z.output<typeof options>['api']>;
type Auth = z.output<typeof auth>;

/** The fields of a webhook that the gateway reads. The console's test call has id 0. */
const webhook = z.object({
  id: z.int().min(0),
  transactionDate: bankTime,
  accountNumber: toldAccount,
  subAccount: toldAccountOrNot,
  content: toldText,
  description: toldText,
  transferType: z.enum(['in', 'out']),
  transferAmount: toldAmount.min(0),
  referenceCode: toldReference,
  /** The name of the order that SePay reads in the text by the shop's own prefixes. Null is normal. */
  code: toldText,
});
type Webhook = z.output<typeof webhook>;

/** Digits only: a number with points or commas may mean another amount (PROTOCOL.md, clause SRC-26). */
const digits = z
  .string()
  .regex(/^\d{1,15}$/, 'digits only')
  .transform(Number);
/** The fields of a webhook that is sent as a form. Every value is a text. */
const formOfWebhook = webhook.extend({
  id: digits.pipe(webhook.shape.id),
  transferAmount: digits.pipe(webhook.shape.transferAmount),
});
/** A form has these values where JSON has null. */
const NULLS: readonly string[] = ['', 'null'];

/** An entry of the list, API v2. Its id differs from the webhook's. */
const entry = z.object({
  id: z.union([z.string().min(1).max(LIMITS.referenceNumberMax), z.int()]).transform(String),
  transaction_date: bankTime,
  account_number: toldAccount,
  va: toldAccountOrNot,
  amount_in: toldAmount.min(0),
  transaction_content: toldText,
  reference_number: toldReference,
  webhook_success: z.union([z.boolean(), z.int()]).nullish(),
});
const page = z.object({
  status: z.literal('success'),
  data: eachOf(entry),
  meta: z.object({ pagination: z.object({ has_more: z.boolean() }) }),
});

/** SePay webhooks (PROTOCOL.md, clauses SRC-6 and SRC-7). */
export const sepay: SourceKind<typeof options> = {
  kind: 'sepay',
  manual: {
    atProvider: 'webhook to `/hooks/{name}`, with HMAC-SHA256 or an API key',
    proof: '`auth.kind: hmac` and `secret`; `apikey` and `key`',
    catchUp: '`api.token`',
  },
  options,
  isKeyGiven: () => false,
  withKey: ({ auth, ...rest }, key) => ({
    ...rest,
    auth: auth.kind === 'apikey' ? { ...auth, key } : { ...auth, secret: key },
  }),
  proofs: ({ auth }) => proofsOf(auth),
  open: ({ name, kind, auth, api }, { clock }): Source => ({
    name,
    kind,
    success: SUCCESS,
    limited: LIMITED,
    isGuessable: () => areGuessable(proofsOf(auth)),
    list: api && ((period, ask) => listOf(api, period, ask)),
    hear: (request) => {
      if (request.path !== '') return refusedUnproved('path: expected nothing after the name of the source');
      const problem = problemOfOrigin(auth, request, clock.wallMs());
      if (problem !== undefined) return refused(401, problem);
      if (isForm(request.headers) && request.body.length > 0) {
        return { kind: 'form', heardIn: (fields) => heardInForm(fields, request) };
      }
      const decoded = decodeHook(webhook, request, { takesForms: true });
      return decoded.ok ? heardIn(decoded.value) : refused(400, decoded.reason);
    },
  }),
};

function proofsOf(auth: Auth): Proof[] {
  return auth.kind === 'apikey'
    ? [{ at: ['auth', 'key'], secret: auth.key }]
    : [{ at: ['auth', 'secret'], secret: auth.secret, issued: ISSUED }];
}

/** Returns why a request is not proved to come from SePay, or undefined if it is. */
function problemOfOrigin(auth: Auth, { headers, body }: HookRequest, nowMs: number): string | undefined {
  const setUp = `auth.kind ${auth.kind}`;
  if (auth.kind === 'apikey') {
    const authorization = headerOf(headers, 'authorization').trim();
    const key = /^Apikey +(\S.*)$/i.exec(authorization)?.[1];
    if (key === undefined) {
      const problem = authorization === '' ? 'is missing' : 'expected Apikey and the key';
      return missingProof(`Authorization${authorization === '' ? ' ' : ': '}${problem}`, { setUp, headers });
    }
    return equalSecrets(key, auth.key) ? undefined : 'Authorization: the key is wrong';
  }
  for (const name of ['X-SePay-Signature', 'X-SePay-Timestamp']) {
    if (headerOf(headers, name.toLowerCase()) === '') return missingProof(`${name} is missing`, { setUp, headers });
  }
  const stamp = headerOf(headers, 'x-sepay-timestamp');
  const signature = /^sha256=([0-9a-f]{64})$/i.exec(headerOf(headers, 'x-sepay-signature'))?.[1];
  if (!/^\d{1,12}$/.test(stamp)) return 'X-SePay-Timestamp: expected seconds since 1970';
  if (signature === undefined) return 'X-SePay-Signature: expected sha256= and 64 hexadecimal digits';
  const expected = createHmac('sha256', auth.secret).update(`${stamp}.`).update(body).digest('hex');
  if (!equalSecrets(signature.toLowerCase(), expected)) return 'X-SePay-Signature: does not fit body and secret';
  if (Math.abs(nowMs - Number(stamp) * 1000) <= SIGNATURE_DRIFT_MS_MAX) return undefined;
  return `X-SePay-Timestamp: expected at most ${SIGNATURE_DRIFT_MS_MAX / 1000} s from the time of the gateway`;
}

function heardInForm(fields: Readonly<Record<string, string>>, { headers, body }: HookRequest): Heard {
  const given = Object.entries(fields).filter(([, value]) => !NULLS.includes(value));
  const parsed = formOfWebhook.safeParse(Object.fromEntries(given));
  if (parsed.success) return heardIn(parsed.data);
  const isJson = looksLike(body) === 'JSON';
  return refused(400, `form: ${issuesOf(parsed.error)}${isJson ? `; the body is JSON${wrongType(headers)}` : ''}`);
}

function heardIn({ id, transferType, transferAmount: amount, ...told }: Webhook): Heard {
  const ignored = (why: string): Heard => ({ kind: 'told', credits: [], ignored: [`${id}: ${why}`] });
  if (id === 0) return ignored('a test call');
  if (transferType === 'out') return ignored('a debit');
  if (amount === 0) return ignored('no money');
  const credit = {
    sourceId: String(id),
    reference: told.referenceCode,
    bankAccount: told.accountNumber,
    virtualAccount: told.subAccount,
    amount,
    text: told.content || told.description,
    ...(told.code !== '' && { code: told.code }),
    bankTimeMs: told.transactionDate,
  };
  return { kind: 'told', credits: [credit], ignored: [] };
}

function listOf({ url, token }: Api, { sinceMs, untilMs }: Period, ask: AskSource): AsyncIterable<Listed> {
  return eachPage(async (number) => {
    const query = new URLSearchParams({
      transaction_date_from: vietnamTime(sinceMs),
      transaction_date_to: vietnamTime(untilMs),
      transaction_date_sort: 'asc',
      page: String(number),
      per_page: String(PAGE_ROWS),
    });
    const headers = { authorization: `Bearer ${token}` };
    const { data, meta } = decodeAnswer(await ask(`${url}/v2/transactions?${query}`, { headers }), page);
    const credits = data.read.filter((it) => mayBeNew(it, untilMs)).map(creditOf);
    return { listed: { credits, unread: data.unread }, entries: data, hasMore: meta.pagination.has_more };
  });
}

/**
 * Returns whether an entry may be new money. Webhook and list share only the bank's reference. An entry without one
 * counts once its webhook has failed for good.
 */
function mayBeNew(it: z.output<typeof entry>, nowMs: number): boolean {
  if (it.amount_in === 0) return false;
  if (it.reference_number !== '') return true;
  const isGivenUp = it.transaction_date === undefined || nowMs - it.transaction_date > RETRIES_MS;
  return isGivenUp && isMissed(it);
}

/** Returns whether SePay reports that its webhook has failed. */
function isMissed({ webhook_success: told }: z.output<typeof entry>): boolean {
  return told === false || told === 0;
}

function creditOf(it: z.output<typeof entry>): Credit {
  return {
    sourceId: it.id,
    reference: it.reference_number,
    bankAccount: it.account_number,
    virtualAccount: it.va,
    amount: it.amount_in,
    text: it.transaction_content,
    bankTimeMs: it.transaction_date,
    listed: isMissed(it) ? 'missed' : 'told',
  };
}
