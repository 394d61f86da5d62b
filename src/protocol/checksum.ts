import { createHash, timingSafeEqual } from 'node:crypto';

/** The fields that `checkSum` covers, as sent. */
export interface CheckSummed {
  bankAccount: string;
  amount: string;
  bankCode: string;
}

/**
 * Returns the `checkSum` of a device push (service specification 5.3; PROTOCOL.md, clause SUM-1): the lower-case
 * hexadecimal MD5 of password, bankAccount, amount and bankCode, concatenated as UTF-8 without separators. The password
 * is that of the partner's Basic credentials.
 */
export function checkSum(password: string, fields: CheckSummed): string {
  return createHash('md5')
    .update(password + fields.bankAccount + fields.amount + fields.bankCode, 'utf8')
    .digest('hex');
}

/**
 * Returns the `checkSum` of check-order (PROTOCOL.md, clause CHK-1): the lower-case hexadecimal MD5 of bankAccount and
 * the caller's name.
 */
export function accountCheckSum(bankAccount: string, name: string): string {
  return createHash('md5').update(`${bankAccount}${name}`, 'utf8').digest('hex');
}

/** Returns whether two strings are equal. The time of the comparison does not depend on the place of a difference. */
export function equalSecrets(a: string, b: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text, 'utf8').digest();
  return timingSafeEqual(digest(a), digest(b));
}
