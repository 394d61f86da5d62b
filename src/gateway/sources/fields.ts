import { z } from 'zod';
import { type Decoded, decodeWith } from '../../protocol/codec.ts';
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
/** The longest text of a transfer; a bank has some hundred characters at most. */
const TEXT_CHARS_MAX = 2_000;
export const toldText = z.string().max(TEXT_CHARS_MAX);
/** Whole dong; negative amounts are debits, and 0 is no money. */
export const toldAmount = z.int().min(-LIMITS.amountMax).max(LIMITS.amountMax);

const BANK_TIME = /^(\d{4}-\d{2}-\d{2})[ T](\d{2}:\d{2}:\d{2})$/;

/** A time of a bank without a zone, as `2026-01-05 09:10:11`, in milliseconds since 1970. It is Vietnam's, UTC+7. */
export const bankTime = z.string().transform((text, context) => {
  const [, date, time] = BANK_TIME.exec(text) ?? [];
  const ms = date === undefined ? Number.NaN : Date.parse(`${date}T${time}+07:00`);
  if (Number.isNaN(ms) || ms < 0) {
    context.addIssue({ code: 'custom', message: 'expected a time as 2026-01-05 09:10:11' });
  }
  return ms;
});

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
