import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from '../../lib/log.ts';
import type { LoginAttempt, Logins } from '../logins.ts';
import { answerRefusal } from './requests.ts';

/**
 * Lets a login through, or answers it: 401 with the challenge of `WWW-Authenticate`, or 429 with `Retry-After` once
 * there were too many wrong ones. Whether it is right.
 */
export function isLoggedIn(
  request: FastifyRequest,
  reply: FastifyReply,
  attempt: LoginAttempt,
  { logins, log, challenge }: { logins: Logins; log: Logger; challenge: string },
): boolean {
  const verdict = logins.check(attempt, request.socket.remoteAddress ?? '');
  if (verdict.ok) return true;
  const { retryAfterSeconds } = verdict;
  if (retryAfterSeconds > 0) {
    reply.header('retry-after', String(retryAfterSeconds));
    answerRefusal(request, reply, log, { code: 'E74', reason: 'too many wrong logins' }, 429);
  } else {
    reply.header('www-authenticate', challenge);
    const problem = attempt.secret === undefined ? 'no' : 'wrong';
    answerRefusal(request, reply, log, { code: 'E74', reason: `${problem} credentials of a ${attempt.kind}` });
  }
  return false;
}
