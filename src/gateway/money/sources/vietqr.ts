import { createHash, createHmac } from 'node:crypto';
import { z } from 'zod';
import { parseJson } from '../../../lib/http-client.ts';
import { basicCredentials, bearerToken } from '../../../lib/http-server.ts';
import { accountCheckSum, equalSecrets } from '../../../protocol/checksum.ts';
import { isObject } from '../../../protocol/codec.ts';
import { wallTimeMs } from '../../../protocol/fields.ts';
import { PATHS, TOKEN_SECONDS, type TokenResponse, type TransactionSyncReply } from '../../../protocol/http-api.ts';
import {
  areGuessable,
  decodeHook,
  eachOf,
  missingProof,
  type Read,
  sourceName,
  sourceSecret,
  toldAccount,
  toldAmount,
  toldReference,
  toldText,
} from './fields.ts';
import { apiAddress, decodeAnswer } from './list.ts';
import type {
  AskSource,
  Credit,
  Heard,
  HookRequest,
  Listed,
  Period,
  Proof,
  Source,
  SourceDeps,
  SourceKind,
  WaitingOrder,
} from './source.ts';

const SYNC_PATH = '/bank/api/transaction-sync';
const KEY_BYTES = 32;
const DIGEST_CHARS = 32;

const options = z.strictObject({
  kind: z.literal('vietqr'),
  name: sourceName,
  username: sourceSecret,
  password: sourceSecret,
  api: z
    .strictObject({ url: apiAddress, username: sourceSecret, password: sourceSecret })
    .optional()
    .describe("base address of the service and this shop's own login there: asks for open orders by check-order"),
});
type Api = NonNullable<z.output<typeof options>['api']>;

/** The keys of older documentation, and the service's own. */
const OLDER_KEYS = {
  transactionId: 'transactionid',
  transactionTime: 'transactiontime',
  referenceNumber: 'referencenumber',
  bankAccount: 'bankaccount',
};

/** Accepts a number, or its digits, which may end in `.0`. */
const numberOrDigits = (number: z.ZodType<number, number>) =>
  z.union([
    number,
    z
      .string()
      .regex(/^\d{1,15}(\.0+)?$/, 'expected a whole number')
      .transform(Number)
      .pipe(number),
  ]);

/** A time. The gateway does not refuse money for a wrong one. */
const timeOrNot = numberOrDigits(wallTimeMs).optional().catch(undefined);

const transaction = z.preprocess(
  withNewerKeys,
  z.object({
    bankaccount: toldAccount,
    amount: numberOrDigits(toldAmount.min(0)),
    transType: z.enum(['C', 'D']),
    content: toldText,
    transactiontime: timeOrNot,
    transactionid: toldReference,
    referencenumber: toldReference,
  }),
);

const token = z.object({ access_token: z.string().min(1) });
/** The refusals of check-order for an order or an account that the service does not know. */
const UNKNOWN_TO_SERVICE: readonly string[] = ['E96', 'E77'];
const refusal = z.object({ message: z.string() });
/** Times of check-order are seconds. Larger numbers are read as milliseconds. */
const SECONDS_MAX = 100_000_000_000;
const PAID = 1;
const REFUND = 6;
const checked = z.object({
  referenceNumber: toldReference,
  amount: numberOrDigits(toldAmount),
  content: toldText,
  transType: z.string(),
  status: z.int(),
  type: z.int().nullish(),
  timePaid: timeOrNot.transform((it) => (it !== undefined && it < SECONDS_MAX ? it * 1000 : it)),
});

/** The public service, with this gateway as its partner (PROTOCOL.md, clauses SRC-24 and SRC-25). */
export const vietqr: SourceKind<typeof options> = {
  kind: 'vietqr',
  firstPath: '/api/token_generate',
  manual: {
    atProvider: 'partner address `/hooks/{name}`; it adds `/api/token_generate` and `/bank/api/transaction-sync`',
    proof: '`username`, `password`',
    catchUp: '`api`: url, username, password, for open orders',
  },
  options,
  isKeyGiven: () => false,
  withKey: (given, password) => ({ ...given, password }),
  proofs: ({ password }) => proofsOf(password),
  open: ({ kind, name, username, password, api }, deps): Source => {
    const tokens = openTokens(deps);
    return {
      name,
      kind,
      success: replyOf('', ''),
      isAskedByOrder: true,
      limited: replyOf('E74', 'too many wrong proofs'),
      // A bearer token cannot be guessed.
      isGuessable: (path) => path === PATHS.token && areGuessable(proofsOf(password)),
      list: api && ((period, ask) => listOf(api, period, ask)),
      hear: (request): Heard => {
        if (request.path === PATHS.token) {
          const given = basicCredentials(request);
          if (given === undefined) return refused(401, proofMissing('Basic, the user name and the password', request));
          const { username: user, password: secret } = given;
          const isRight = [equalSecrets(user, username), equalSecrets(secret, password)].every((it) => it);
          return isRight
            ? { kind: 'answered', status: 200, body: tokens.issue() }
            : refused(401, 'Authorization: the user name or the password is wrong');
        }
        if (request.path !== SYNC_PATH) {
          return { ...refused(400, `path: expected ${PATHS.token} or ${SYNC_PATH}`), isUnproved: true };
        }
        const bearer = bearerToken(request);
        if (bearer === undefined) return refused(401, proofMissing(`Bearer and a token of ${PATHS.token}`, request));
        return tokens.isValid(bearer)
          ? heardIn(request)
          : refused(401, 'Authorization: the bearer token is wrong or expired');
      },
    };
  },
};

function proofMissing(expected: string, { headers }: HookRequest): string {
  const proof = `Authorization${headers.authorization === undefined ? ' is missing' : ''}: expected ${expected}`;
  return missingProof(proof, { setUp: 'kind vietqr', headers });
}

function proofsOf(password: string): Proof[] {
  return [{ at: ['password'], secret: password }];
}

function heardIn(request: HookRequest): Heard {
  const read = decodeHook(transaction, request);
  if (!read.ok) return refused(400, read.reason);
  const { transType, amount, ...it } = read.value;
  const number = it.referencenumber || it.transactionid || digestOf(read.value);
  const ignored = (why: string): Heard => ({ kind: 'told', credits: [], ignored: [`${number}: ${why}`] });
  if (transType === 'D') return ignored('a debit');
  if (amount === 0) return ignored('no money');
  const credit = {
    sourceId: number,
    reference: it.referencenumber,
    bankAccount: it.bankaccount,
    virtualAccount: '',
    amount,
    text: it.content,
    bankTimeMs: it.transactiontime,
  };
  return { kind: 'told', credits: [credit], ignored: [] };
}

/** Returns the key of a transaction without a number. A retry has the same body, so it has the same key. */
function digestOf(told: z.output<typeof transaction>): string {
  return createHash('sha256').update(JSON.stringify(told)).digest('hex').slice(0, DIGEST_CHARS);
}

function withNewerKeys(json: unknown): unknown {
  if (!isObject(json)) return json;
  const newer = Object.entries(OLDER_KEYS).map(([older, name]) => [name, json[name] ?? json[older]]);
  return { ...json, ...Object.fromEntries(newer) };
}

/** Asks about each unpaid order by its orderId, because the service has no list of transfers. */
async function* listOf(api: Api, { orders }: Period, ask: AskSource): AsyncGenerator<Listed> {
  const named = orders.filter(({ orderId }) => orderId !== '');
  if (named.length === 0) return;
  const basic = Buffer.from(`${api.username}:${api.password}`).toString('base64');
  const how = { method: 'POST', headers: { authorization: `Basic ${basic}` }, body: '{}' };
  const { access_token } = decodeAnswer(await ask(`${api.url}${PATHS.token}`, how), token, 'token_generate');
  for (const order of named) {
    const rows = await checkOrder(api, order, access_token, ask);
    const money = rows.read.filter((row) => {
      const isPaid = row.status === PAID && row.transType === 'C' && row.type !== REFUND;
      return isPaid && row.amount > 0 && row.referenceNumber !== '';
    });
    const unread = rows.unread.map((it) => `order ${order.orderId}: ${it}`);
    yield { credits: money.map((row) => creditOf(row, order)), unread };
  }
}

async function checkOrder(
  { url, username }: Api,
  { bankAccount, orderId }: WaitingOrder,
  bearer: string,
  ask: AskSource,
): Promise<Read<z.output<typeof checked>>> {
  const checkSum = accountCheckSum(bankAccount, username);
  const answer = await ask(`${url}${PATHS.checkOrder}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${bearer}` },
    body: JSON.stringify({ bankAccount, type: 0, value: orderId, checkSum }),
  });
  const said = answer.status === 400 ? refusal.safeParse(parseJson(answer.body)) : undefined;
  if (UNKNOWN_TO_SERVICE.includes(said?.data?.message ?? '')) return { read: [], unread: [] };
  return decodeAnswer(answer, eachOf(checked), 'check-order');
}

function creditOf(row: z.output<typeof checked>, { bankAccount }: WaitingOrder): Credit {
  return {
    sourceId: row.referenceNumber,
    reference: row.referenceNumber,
    bankAccount,
    virtualAccount: '',
    amount: row.amount,
    text: row.content,
    bankTimeMs: row.timePaid,
  };
}

/**
 * Issues and checks tokens of this run. A restart loses nothing, because the service fetches a token before each
 * attempt.
 */
function openTokens({ clock, random }: SourceDeps) {
  const key = random.secret(KEY_BYTES);
  const signatureOf = (expiresAtMs: string) => createHmac('sha256', key).update(expiresAtMs).digest('base64url');
  return {
    issue: (): TokenResponse => {
      const expiresAtMs = String(Math.round(clock.monotonicMs() + TOKEN_SECONDS * 1000));
      const access_token = `${expiresAtMs}.${signatureOf(expiresAtMs)}`;
      return { access_token, token_type: 'Bearer', expires_in: TOKEN_SECONDS };
    },
    isValid: (token: string): boolean => {
      const [expiresAtMs = '', signature = ''] = token.split('.');
      return equalSecrets(signatureOf(expiresAtMs), signature) && clock.monotonicMs() < Number(expiresAtMs);
    },
  };
}

/** Returns the documented reply (service specification, section 6). */
function replyOf(code: string, reason: string): TransactionSyncReply {
  const isError = code !== '';
  return {
    error: isError,
    errorReason: code,
    toastMessage: reason,
    object: isError ? null : { reftransactionid: '' },
  };
}

function refused(status: 400 | 401, reason: string): Extract<Heard, { kind: 'refused' }> {
  return { kind: 'refused', status, reason, body: replyOf(status === 401 ? 'E74' : 'E46', reason) };
}
