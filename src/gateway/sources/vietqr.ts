import { createHmac } from 'node:crypto';
import { z } from 'zod';
import { basicCredentials, bearerToken } from '../../lib/http-server.ts';
import { equalSecrets } from '../../protocol/checksum.ts';
import { isObject } from '../../protocol/codec.ts';
import { wallTimeMs } from '../../protocol/fields.ts';
import { PATHS, TOKEN_SECONDS, type TokenResponse, type TransactionSyncReply } from '../../protocol/http-api.ts';
import { decodeHook, sourceName, sourceSecret, toldAccount, toldAmount, toldOrNot, toldText } from './fields.ts';
import type { Heard, Source, SourceDeps, SourceKind } from './source.ts';

const SYNC_PATH = '/bank/api/transaction-sync';
const KEY_BYTES = 32;

const options = z.strictObject({
  kind: z.literal('vietqr'),
  name: sourceName,
  username: sourceSecret,
  password: sourceSecret,
});

/** Keys as older documentation writes them, and as the service does. */
const OLDER_KEYS = {
  transactionId: 'transactionid',
  transactionTime: 'transactiontime',
  referenceNumber: 'referencenumber',
  bankAccount: 'bankaccount',
};

/** A number, or the same in digits, which may end in `.0`. */
const numberOrDigits = (number: z.ZodType<number, number>) =>
  z.union([
    number,
    z
      .string()
      .regex(/^\d{1,15}(\.0+)?$/, 'expected a whole number')
      .transform(Number)
      .pipe(number),
  ]);

const transaction = z
  .preprocess(
    withNewerKeys,
    z.object({
      bankaccount: toldAccount,
      amount: numberOrDigits(toldAmount.min(0)),
      transType: z.enum(['C', 'D']),
      content: toldText.nullish().transform((it) => it ?? ''),
      transactiontime: numberOrDigits(wallTimeMs),
      transactionid: toldOrNot,
      referencenumber: toldOrNot,
    }),
  )
  .refine((it) => it.referencenumber !== '' || it.transactionid !== '', 'referencenumber: expected a number');

/** The public service, with this gateway as its partner (PROTOCOL.md, clauses SRC-24 and SRC-25). */
export const vietqr: SourceKind<typeof options> = {
  kind: 'vietqr',
  options,
  open: ({ kind, name, username, password }, deps): Source => {
    const tokens = openTokens(deps);
    return {
      name,
      kind,
      success: replyOf('', ''),
      list: undefined,
      hear: (request): Heard => {
        if (request.path === PATHS.token) {
          const { username: user = '', password: secret = '' } = basicCredentials(request) ?? {};
          const isRight = [equalSecrets(user, username), equalSecrets(secret, password)].every((it) => it);
          return isRight
            ? { kind: 'answered', status: 200, body: tokens.issue() }
            : refused(401, 'Authorization: the user name or the password is missing or wrong');
        }
        if (request.path !== SYNC_PATH) return refused(400, `path: expected ${PATHS.token} or ${SYNC_PATH}`);
        if (tokens.isValid(bearerToken(request) ?? '')) return heardIn(request.body);
        return refused(401, 'Authorization: the bearer token is missing, wrong or expired');
      },
    };
  },
};

function heardIn(body: Buffer): Heard {
  const read = decodeHook(transaction, body);
  if (!read.ok) return refused(400, read.reason);
  const { transType, amount, ...it } = read.value;
  const number = it.referencenumber || it.transactionid;
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

function withNewerKeys(json: unknown): unknown {
  if (!isObject(json)) return json;
  const newer = Object.entries(OLDER_KEYS).map(([older, name]) => [name, json[name] ?? json[older]]);
  return { ...json, ...Object.fromEntries(newer) };
}

/** Tokens of this run of the gateway: the service fetches one before each attempt, so a restart loses nothing. */
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

/** The documented reply (service specification, section 6). */
function replyOf(code: string, reason: string): TransactionSyncReply {
  const isError = code !== '';
  return {
    error: isError,
    errorReason: code,
    toastMessage: reason,
    object: isError ? null : { reftransactionid: '' },
  };
}

function refused(status: 400 | 401, reason: string): Heard {
  return { kind: 'refused', status, reason, body: replyOf(status === 401 ? 'E74' : 'E46', reason) };
}
