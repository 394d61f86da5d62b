import { createHmac } from 'node:crypto';
import { z } from 'zod';
import { vietnamDay } from '../../../lib/vietnam-time.ts';
import { equalSecrets } from '../../../protocol/checksum.ts';
import { isObject } from '../../../protocol/codec.ts';
import {
  areGuessable,
  bankTime,
  decodeHook,
  eachOf,
  headerOf,
  LIMITED,
  missingProof,
  type Read,
  refused,
  refusedUnproved,
  SUCCESS,
  sortedByKey,
  sourceName,
  sourceSecret,
  toldAccount,
  toldAccountOrNot,
  toldAmount,
  toldReference,
  toldText,
} from './fields.ts';
import { decodeAnswer, eachPage, listApi, PAGE_ROWS } from './list.ts';
import type { AskSource, Credit, Heard, HookRequest, Listed, Period, Proof, Source, SourceKind } from './source.ts';

/** Casso documents no limit. This one is the gateway's own. */
const SIGNATURE_DRIFT_MS_MAX = 300_000;
/** A present time in seconds has this many digits. In milliseconds it has three more. */
const SECONDS_DIGITS = 10;
/** The transaction id of the test call from Casso's console. */
const TEST_ID = 0;

/** The form of a security key of webhook V2. */
const ISSUED = { form: /^[0-9A-Za-z]{64}$/, expected: 'the key as Casso makes it, 64 letters and digits' };

const auth = z.discriminatedUnion('kind', [
  z
    .strictObject({
      kind: z.literal('signature'),
      key: sourceSecret,
      previousKey: sourceSecret.optional().describe('taken too, while the key is changed'),
    })
    .describe('webhook V2'),
  z.strictObject({ kind: z.literal('secure-token'), token: sourceSecret }).describe('webhook V1'),
]);
type Auth = z.output<typeof auth>;

const options = z.strictObject({
  kind: z.literal('casso'),
  name: sourceName,
  auth,
  api: listApi('https://oauth.casso.vn'),
});
type Api = NonNullable<z.output<typeof options>['api']>;

/** A transaction as V2, V1 or the list writes it. */
type Transaction = Omit<Credit, 'sourceId'> & { id: number };

const id = z.int().min(0);

const transactionV2 = z
  .object({
    id,
    reference: toldReference,
    description: toldText,
    amount: toldAmount,
    transactionDateTime: bankTime,
    accountNumber: toldAccount,
    virtualAccountNumber: toldAccountOrNot,
  })
  .transform(
    (it): Transaction => ({
      id: it.id,
      reference: it.reference,
      bankAccount: it.accountNumber,
      virtualAccount: it.virtualAccountNumber,
      amount: it.amount,
      text: it.description,
      bankTimeMs: it.transactionDateTime,
    }),
  );

/** A transaction as V1 and the list write it. */
const transactionV1 = z
  .object({
    id,
    tid: toldReference,
    description: toldText,
    amount: toldAmount,
    when: bankTime,
    bank_sub_acc_id: toldAccountOrNot,
    subAccId: toldAccountOrNot,
    bankSubAccId: toldAccountOrNot,
    virtualAccount: toldAccountOrNot,
  })
  .refine((it) => accountV1(it) !== '', 'bank_sub_acc_id: expected an account, in quotes')
  .transform(
    (it): Transaction => ({
      id: it.id,
      reference: it.tid,
      bankAccount: accountV1(it),
      virtualAccount: it.virtualAccount,
      amount: it.amount,
      text: it.description,
      bankTimeMs: it.when,
    }),
  );

function accountV1(it: { bank_sub_acc_id: string; subAccId: string; bankSubAccId: string }): string {
  return it.bank_sub_acc_id || it.subAccId || it.bankSubAccId;
}

/** A call of V2 has one transaction, a call of V1 several. */
const WEBHOOKS = {
  signature: z.object({ error: z.literal(0), data: transactionV2.transform((it) => ({ read: [it], unread: [] })) }),
  'secure-token': z.object({ error: z.literal(0), data: eachOf(transactionV1) }),
} satisfies Record<Auth['kind'], z.ZodType<{ data: Read<Transaction> }>>;

const page = z.object({
  error: z.literal(0),
  data: z.object({ totalPages: z.int().min(0), records: eachOf(transactionV1) }),
});

/** Casso (PROTOCOL.md, clauses SRC-20 and SRC-21). */
export const casso: SourceKind<typeof options> = {
  kind: 'casso',
  manual: {
    atProvider: 'webhook V2 with its security key, or V1',
    proof: '`auth.kind: signature` and `key` (`previousKey` while it is changed); `secure-token` and `token`',
    catchUp: '`api.token`',
  },
  options,
  isKeyGiven: ({ auth }) => auth.kind === 'signature',
  withKey: ({ auth, ...rest }, key) => ({
    ...rest,
    auth: auth.kind === 'signature' ? { ...auth, key, previousKey: auth.key } : { ...auth, token: key },
  }),
  proofs: ({ auth }) => proofsOf(auth),
  open: ({ kind, name, auth, api }, { clock }): Source => ({
    name,
    kind,
    success: SUCCESS,
    limited: LIMITED,
    isGuessable: () => areGuessable(proofsOf(auth)),
    list: api && ((period, ask) => listOf(api, period, ask)),
    hear: (request): Heard => {
      if (request.path !== '') return refusedUnproved('path: expected nothing after the name of the source');
      const problem = problemOfOrigin(auth, request, clock.wallMs());
      if (problem !== undefined) return refused(401, problem);
      const webhook = decodeHook<{ data: Read<Transaction> }>(WEBHOOKS[auth.kind], request);
      return webhook.ok ? heardIn(webhook.value.data) : refused(400, webhook.reason);
    },
  }),
};

function proofsOf(auth: Auth): Proof[] {
  if (auth.kind === 'secure-token') return [{ at: ['auth', 'token'], secret: auth.token }];
  const { key, previousKey } = auth;
  const previous =
    previousKey === undefined ? [] : [{ at: ['auth', 'previousKey'], secret: previousKey, issued: ISSUED }];
  return [{ at: ['auth', 'key'], secret: key, issued: ISSUED }, ...previous];
}

/** Returns why a request is not proved to come from Casso, or undefined if it is. */
function problemOfOrigin(auth: Auth, request: HookRequest, nowMs: number): string | undefined {
  const { headers } = request;
  const setUp = `auth.kind ${auth.kind}`;
  if (auth.kind === 'secure-token') {
    const given = headerOf(headers, 'secure-token');
    if (given === '') return missingProof('Secure-Token is missing', { setUp, headers });
    return equalSecrets(given, auth.token) ? undefined : 'Secure-Token: it is wrong';
  }
  const given = headerOf(headers, 'x-casso-signature');
  if (given === '') return missingProof('X-Casso-Signature is missing', { setUp, headers });
  const sent = /^t=(\d{1,15}),v1=([0-9a-fA-F]{128})$/.exec(given);
  const [, stamp = '', signature = ''] = sent ?? [];
  if (sent === null) return 'X-Casso-Signature: expected t=, milliseconds, and v1=, 128 hexadecimal digits';
  const canonical = canonicalBody(request);
  if (!canonical.ok) return `X-Casso-Signature: nothing can be signed: ${canonical.reason}`;
  const isRight = [auth.key, auth.previousKey].some((key) => {
    if (key === undefined) return false;
    const expected = createHmac('sha512', key).update(`${stamp}.${canonical.value}`, 'utf8').digest('hex');
    return equalSecrets(expected, signature.toLowerCase());
  });
  if (!isRight) return 'X-Casso-Signature: does not fit body and key';
  if (Math.abs(nowMs - Number(stamp)) <= SIGNATURE_DRIFT_MS_MAX) return undefined;
  if (stamp.length <= SECONDS_DIGITS) return 'X-Casso-Signature: expected t in milliseconds since 1970, not in seconds';
  return `X-Casso-Signature: expected t at most ${SIGNATURE_DRIFT_MS_MAX / 1000} s from the time of the gateway`;
}

/** Writes the body as `JSON.stringify` does, with the keys of each object sorted. Arrays keep their order. */
function canonicalBody(request: HookRequest): ReturnType<typeof decodeHook<string>> {
  const json = decodeHook(z.unknown(), request);
  if (!json.ok) return json;
  return { ok: true, value: JSON.stringify(json.value, (_key, it) => (isObject(it) ? sortedByKey(it) : it)) };
}

/** Lists the transactions of whole days, because some banks report no time of day. Debits are left out. */
function listOf({ url, token }: Api, { sinceMs, untilMs }: Period, ask: AskSource): AsyncIterable<Listed> {
  const [fromDate, toDate] = [sinceMs, untilMs].map(vietnamDay);
  return eachPage(async (number) => {
    const query = `fromDate=${fromDate}&toDate=${toDate}&page=${number}&pageSize=${PAGE_ROWS}&sort=ASC`;
    const headers = { authorization: `Apikey ${token}` };
    const { data } = decodeAnswer(await ask(`${url}/v2/transactions?${query}`, { headers }), page);
    const { read, unread } = data.records;
    const listed = { credits: creditsOf(read).credits, unread };
    return { listed, entries: data.records, hasMore: number < data.totalPages };
  });
}

function heardIn({ read, unread }: Read<Transaction>): Heard {
  const { credits, ignored } = creditsOf(read);
  return { kind: 'told', credits, ignored: [...unread, ...ignored] };
}

function creditsOf(transactions: readonly Transaction[]): { credits: Credit[]; ignored: string[] } {
  const credits: Credit[] = [];
  const ignored: string[] = [];
  for (const { id, ...told } of transactions) {
    if (id === TEST_ID) ignored.push(`${id}: a test call`);
    else if (told.amount < 0) ignored.push(`${id}: a debit`);
    else if (told.amount === 0) ignored.push(`${id}: no money`);
    else credits.push({ sourceId: String(id), ...told });
  }
  return { credits, ignored };
}
