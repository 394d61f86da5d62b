import { createHash } from 'node:crypto';
import type { ServiceAccess } from './subject.ts';

/**
 * Returns the partner's checkSum of a push (service specification 5.3). The gateway's code does not compute it, because
 * the judge must not share its mistakes.
 */
export function checkSumOf(
  { password }: ServiceAccess,
  { bankAccount, amount, bankCode }: Readonly<Record<string, unknown>>,
): string {
  const covered = [bankAccount, amount, bankCode].map((value) => (typeof value === 'string' ? value : ''));
  return createHash('md5')
    .update([password, ...covered].join(''), 'utf8')
    .digest('hex');
}
