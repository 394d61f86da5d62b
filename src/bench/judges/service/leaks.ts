import { PATHS } from '../../../protocol/http-api.ts';
import { checkSumOf } from './check-sum.ts';
import { type Answer, isRefusal } from './client.ts';
import type { SentRequest, ServiceOptions } from './subject.ts';

/** A shorter password may stand in an answer by chance. */
const PASSWORD_CHARS_MIN = 6;

/** Returns the secrets of the partners in an answer, in words (PROTOCOL.md, clause ERR-7). */
export function leaksIn({ access, second }: ServiceOptions, { path, fields }: SentRequest, called: Answer): string[] {
  const text = `${JSON.stringify(called.headers)} ${called.text}`;
  const where = `the answer of ${path.slice(path.indexOf('/', path.indexOf('//') + 2))} has`;
  return [access, second].flatMap((partner) => {
    if (partner === undefined) return [];
    const { password, username } = partner;
    const isPassword = password.length >= PASSWORD_CHARS_MIN && text.includes(password);
    const right = checkSumOf(partner, fields);
    const isPush = path.endsWith(PATHS.sendQr) && fields.checkSum !== right;
    const isCheckSum = isPush && isRefusal(called) && text.toLowerCase().includes(right);
    return [
      ...(isPassword ? [`${where} the password of ${username}`] : []),
      ...(isCheckSum ? [`${where} the right checkSum, which the request had not`] : []),
    ];
  });
}
