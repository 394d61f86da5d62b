import { z } from 'zod';
import { type Decoded, decodeWith, issuesOf } from '../../protocol/codec.ts';
import type { Code } from '../../protocol/codes.ts';
import { LIMITS } from '../../protocol/fields.ts';
import type { Heard } from './source.ts';

/** The name of a source, which is in the address of its hook. */
export const sourceName = z.string().regex(/^[a-z0-9-]{1,40}$/, '1 to 40 small letters, digits and hyphens');

/** A key, password or token of a source. */
export const sourceSecret = z.string().min(1).max(1_000);

/** An account in a body: too long a one would fit no store. */
export const toldAccount = z.string().trim().min(1).max(LIMITS.codeFieldMax);
export const toldReference = z.string().trim().max(LIMITS.referenceNumberMax);
/** Where a source may leave it out: then ''. */
export const toldOrNot = z
  .string()
  .trim()
  .max(LIMITS.referenceNumberMax)
  .nullish()
  .transform((text) => text ?? '');
/** The rest of a longer text is dropped; a bank has some hundred characters at most. */
const TEXT_CHARS_MAX = 2_000;
/** Characters that nobody sees. Some banks break lines with them, and PostgreSQL stores no NUL. */
const UNSEEN = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;
/** The text of a transfer. Money is not refused for its text: what nobody can see becomes a blank. */
export const toldText = z.string().transform((text) => text.slice(0, TEXT_CHARS_MAX).replaceAll(UNSEEN, ' ').trim());
/** Whole dong; negative amounts are debits, and 0 is no money. */
export const toldAmount = z.int().min(-LIMITS.amountMax).max(LIMITS.amountMax);

const BANK_TIME = /^(\d{4}-\d{2}-\d{2})(?:[ T](\d{2}:\d{2}:\d{2})(?:\.\d+)?(Z|[+-]\d{2}:\d{2})?)?$/;
/** Vietnam's time, UTC+7 without daylight saving. */
const VIETNAM = '+07:00';

/**
 * A time of a bank, as `2026-01-05 09:10:11`, in milliseconds since 1970. Without a zone it is Vietnam's. Some lists have
 * the day alone.
 */
export const bankTime = z.string().transform((text, context) => {
  const [, date, time = '00:00:00', zone = VIETNAM] = BANK_TIME.exec(text) ?? [];
  const ms = date === undefined ? Number.NaN : Date.parse(`${date}T${time}${zone}`);
  if (Number.isNaN(ms) || ms < 0) {
    context.addIssue({ code: 'custom', message: 'expected a time as 2026-01-05 09:10:11' });
  }
  return ms;
});

/** The items of an array that could be read, and one line for each of the others. */
export interface Read<T> {
  read: T[];
  unread: string[];
}

/**
 * An array of which each item is read by itself: a wrong one does not hold up the money of the others. An array of wrong
 * ones alone is an error.
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

/** The same object with its keys from A to Z, as sources sign it. */
export function sortedByKey(object: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(object).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** The body of 2xx for sources that want nothing more. */
export const SUCCESS = { success: true } as const;

/** Decodes the JSON of a hook. */
export function decodeHook<T>(schema: z.ZodType<T>, body: Buffer): Decoded<T> {
  return decodeWith(schema, body, LIMITS.httpBodyBytesMax);
}

/** A refusal in the form of sources that read nothing more; `reason` is for log and console. */
export function refused(status: 400 | 401, reason: string): Heard {
  const message: Code = status === 401 ? 'E74' : 'E46';
  return { kind: 'refused', status, reason, body: { success: false, message } };
}

/** The value of a header that may come once only. */
export function headerOf(headers: Readonly<Record<string, string | string[] | undefined>>, name: string): string {
  const value = headers[name];
  return typeof value === 'string' ? value : '';
}
