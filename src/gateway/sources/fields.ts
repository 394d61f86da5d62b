import { z } from 'zod';
import type { Heard } from './source.ts';

/** The name of a source, which is in the address of its hook. */
export const sourceName = z.string().regex(/^[a-z0-9-]{1,40}$/, '1 to 40 small letters, digits and hyphens');

/** A key, password or token of a source. */
export const sourceSecret = z.string().min(1).max(1_000);

const BANK_TIME = /^(\d{4}-\d{2}-\d{2})[ T](\d{2}:\d{2}:\d{2})$/;

/** A time of a bank without a zone, as `2026-01-05 09:10:11`, in milliseconds since 1970. It is Vietnam's, UTC+7. */
export const bankTime = z.string().transform((text, context) => {
  const [, date, time] = BANK_TIME.exec(text) ?? [];
  const ms = date === undefined ? Number.NaN : Date.parse(`${date}T${time}+07:00`);
  if (Number.isNaN(ms)) context.addIssue({ code: 'custom', message: 'expected a time as 2026-01-05 09:10:11' });
  return ms;
});

/** The body of 2xx for sources that want nothing more. */
export const SUCCESS = { success: true } as const;

/** A refusal in the form of sources that read nothing more; `message` is a code, `reason` is for the log. */
export function refused(status: 400 | 401, message: string, reason: string): Heard {
  return { kind: 'refused', status, reason, body: { success: false, message } };
}
