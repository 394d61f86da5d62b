import { createHash } from 'node:crypto';
import { z } from 'zod';
import { looksLike, mediaTypeOf, notJson, textIn } from '../../../lib/bodies.ts';
import { type Decoded, decodeWith, issuesOf } from '../../../protocol/codec.ts';
import type { Code } from '../../../protocol/codes.ts';
import { LIMITS } from '../../../protocol/fields.ts';
import { isSampleSecret, isStrongSecret, SECRET_EXPECTED } from '../../../protocol/secret.ts';
import type { Heard, HookRequest, Proof } from './source.ts';

/** The name of a source. It is part of the address of its hook. */
export const sourceName = z.string().regex(/^[a-z0-9-]{1,40}$/, '1 to 40 small letters, digits and hyphens');

export const sourceSecret = z.string().min(1).max(1_000);

/** Returns why an attacker could guess this secret, or undefined if it has 128 bits. */
export function weaknessOf({ secret, issued }: Proof): string | undefined {
  if (isSampleSecret(secret)) return 'is a sample, which everybody knows: expected one of your own';
  if (isStrongSecret(secret) || issued?.form.test(secret) === true) return undefined;
  return issued === undefined ? SECRET_EXPECTED : `expected ${issued.expected}, or another secret of 128 bits`;
}

/** Returns whether an attacker could guess one of these secrets. */
export function areGuessable(proofs: readonly Proof[]): boolean {
  return proofs.some((it) => weaknessOf(it) !== undefined);
}

/**
 * A text that a source may leave out or write as a number. The gateway does not refuse proved money for a minor field.
 */
const anyText = z
  .unknown()
  .optional()
  .transform((it) => (typeof it === 'string' || typeof it === 'number' ? `${it}`.trim() : ''));
const withinAccount = (text: string) => text.slice(0, LIMITS.codeFieldMax);
/** An account in a body. A text that is too long is cut, and matches no account. */
export const toldAccount = z.string().trim().min(1).transform(withinAccount);
/** An account that a source may leave out, then ''. A number is not accepted: it may have lost a leading zero. */
export const toldAccountOrNot = z
  .unknown()
  .optional()
  .transform((it) => withinAccount(typeof it === 'string' ? it.trim() : ''));

/**
 * Some banks write this in place of a missing number: a word for nothing, one character, or no letter and no digit from
 * 1 to 9.
 */
const NO_NUMBER = /^(?:n[^a-z0-9]*a|null|undefined|none|nil|nan|.|[^a-z1-9]*)$/i;
const DIGEST_CHARS = 32;

/** A bank's number of a transfer, or '' without one. */
export const toldReference = anyText.transform((text) => {
  if (NO_NUMBER.test(text)) return '';
  if (text.length <= LIMITS.referenceNumberMax) return text;
  // Two long numbers may have the same beginning, so a digest keeps them apart.
  const digest = createHash('sha256').update(text).digest('hex').slice(0, DIGEST_CHARS);
  return `${text.slice(0, LIMITS.referenceNumberMax - DIGEST_CHARS - 1)}#${digest}`;
});
/** A longer text is cut. A bank writes a few hundred characters at most. */
const TEXT_CHARS_MAX = 2_000;
/** Invisible characters. Some banks break lines with them, and PostgreSQL stores no NUL. */
const UNSEEN = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;
/**
 * The text of a transfer, or '' without one. Invisible characters become blanks, because money is not refused for its
 * text.
 */
export const toldText = anyText.transform((text) => text.slice(0, TEXT_CHARS_MAX).replaceAll(UNSEEN, ' ').trim());
/** Whole dong. Negative amounts are debits, and 0 is no money. */
export const toldAmount = z.int().min(-LIMITS.amountMax).max(LIMITS.amountMax);

const BANK_TIME = /^(\d{4}-\d{2}-\d{2})(?:[ T](\d{2}:\d{2}:\d{2})(?:\.\d+)?(Z|[+-]\d{2}:\d{2})?)?$/;
/** Vietnam's time, UTC+7 without daylight saving. */
const VIETNAM = '+07:00';

/**
 * Reads a bank's time such as `2026-01-05 09:10:11` as milliseconds since 1970, or `undefined` if it is not one. A time
 * without a zone is Vietnam's. A day alone is read as its first moment.
 */
export const bankTime = anyText.transform((text): number | undefined => {
  const [, date, time = '00:00:00', zone = VIETNAM] = BANK_TIME.exec(text) ?? [];
  if (date === undefined || !isDay(date)) return undefined;
  const ms = Date.parse(`${date}T${time}${zone}`);
  return ms >= 0 ? ms : undefined;
});

/** Returns whether the calendar has this day. `Date.parse` reads the 30th of February as the 2nd of March. */
function isDay(date: string): boolean {
  const ms = Date.parse(`${date}T00:00:00Z`);
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(date);
}

/** The readable items of an array, and one line for each of the others. */
export interface Read<T> {
  read: T[];
  unread: string[];
}

/**
 * Reads each item of an array by itself, so that a wrong item does not block the money of the others. If every item is
 * wrong, the array is an error.
 */
export function eachOf<T>(item: z.ZodType<T>): z.ZodType<Read<T>, unknown> {
  return z.array(z.unknown()).transform((items, context) => {
    const all: Read<T> = { read: [], unread: [] };
    for (const [i, it] of items.entries()) {
      const parsed = item.safeParse(it);
      if (parsed.success) all.read.push(parsed.data);
      else all.unread.push(`item ${i}: ${issuesOf(parsed.error)}`);
    }
    const [first] = all.unread;
    if (all.read.length === 0 && first !== undefined) context.addIssue({ code: 'custom', message: first });
    return all;
  });
}

/** Returns the object with its keys sorted, as sources sign it. */
export function sortedByKey(object: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(object).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** The body of 2xx for sources that read no more. */
export const SUCCESS = { success: true } as const;
/** The body of 429 for sources that read no more. */
export const LIMITED = { success: false, message: 'E74' satisfies Code } as const;

/** In UTF-8 a wrong byte becomes a character of three bytes. */
const READ_BYTES_MAX = 3 * LIMITS.httpBodyBytesMax;

/**
 * Decodes the JSON of a hook. A wrong encoding is no reason to refuse money: only some letters are lost. A refusal
 * describes the body, and names a wrong Content-Type.
 */
export function decodeHook<T>(
  schema: z.ZodType<T>,
  { headers, body }: HookRequest,
  { takesForms = false } = {},
): Decoded<T> {
  const text = textOfHook(headers, body);
  const decoded = decodeWith(schema, text, READ_BYTES_MAX);
  if (decoded.ok) return decoded;
  if (text.trim() === '') return { ok: false, reason: 'the body is empty' };
  const problem = notJson(text);
  const reason = problem ?? decoded.reason;
  const form = takesForms ? looksLike(body) : undefined;
  if (form !== undefined && form !== 'JSON') {
    return { ok: false, reason: `${reason}: it is a form${wrongType(headers, form)}` };
  }
  const type = mediaTypeOf(headers);
  const isRight = type === undefined ? problem === undefined : /json/i.test(type);
  return { ok: false, reason: isRight ? reason : `${reason}${wrongType(headers)}` };
}

/** Describes a wrong Content-Type. The text ends a sentence. */
export function wrongType(headers: HookRequest['headers'], expected = 'application/json'): string {
  const type = mediaTypeOf(headers);
  return `; Content-Type is ${type ?? 'missing'}, expected ${expected}`;
}

function textOfHook(headers: HookRequest['headers'], body: Buffer): string {
  try {
    return textIn(body, headers, { isLenient: true });
  } catch {
    return new TextDecoder().decode(body);
  }
}

/** Makes a refusal for sources that read no more. `reason` goes to log and console. */
export function refused(status: 400 | 401, reason: string): Extract<Heard, { kind: 'refused' }> {
  const message: Code = status === 401 ? 'E74' : 'E46';
  return { kind: 'refused', status, reason, body: { success: false, message } };
}

/** Makes a refusal of a request whose proof of origin was not yet checked. */
export function refusedUnproved(reason: string): Extract<Heard, { kind: 'refused' }> {
  return { ...refused(400, reason), isUnproved: true };
}

/** Returns the value of a header, or '' if it is missing or repeated. */
export function headerOf(headers: Readonly<Record<string, string | string[] | undefined>>, name: string): string {
  const value = headers[name];
  return typeof value === 'string' ? value : '';
}

/** The headers by which a source, or a program that tries a hook, proves its origin. */
const PROOFS = [
  'Authorization',
  'X-SePay-Signature',
  'X-SePay-Timestamp',
  'X-Casso-Signature',
  'Secure-Token',
] as const;
/** The schemes of Authorization. Any other first word may be a secret, so it is not shown. */
const SCHEMES = ['Apikey', 'Basic', 'Bearer', 'Digest', 'HMAC'] as const;

/**
 * Describes a missing proof: `X-SePay-Signature is missing: this source has auth.kind hmac; the call came with
 * Authorization: Apikey`. It names the headers that came instead, never their values.
 */
export function missingProof(
  proof: string,
  { setUp, headers }: { setUp: string; headers: HookRequest['headers'] },
): string {
  const came = PROOFS.filter((it) => headers[it.toLowerCase()] !== undefined).map((it) =>
    it === 'Authorization' ? authorizationIn(headers) : it,
  );
  return `${proof}: this source has ${setUp}; the call came with ${came.join(', ') || 'no header of a proof'}`;
}

function authorizationIn({ authorization = '' }: HookRequest['headers']): string {
  const word = authorization.trim().split(/\s/, 1)[0]?.toLowerCase();
  const scheme = SCHEMES.find((it) => it.toLowerCase() === word);
  return `Authorization${scheme === undefined ? ' of no known scheme' : `: ${scheme}`}`;
}
