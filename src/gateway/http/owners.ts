import { isIP } from 'node:net';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { hostnameOf, isForeignPage } from '../../lib/http-guard.ts';
import type { Logger } from '../../lib/log.ts';
import type { Logins } from '../logins.ts';
import { isLoggedIn } from './login-answer.ts';
import { answerRefusal, bearerToken } from './requests.ts';

export interface OwnersDeps {
  /** Whoever has it is an owner; without one, whoever is on this machine. */
  adminToken: string | undefined;
  logins: Logins;
  log: Logger;
}

/** Opens the routes of a scope to programs and pages of this machine only or, with an admin token, to whoever has it. */
export function forOwnersOnly(scope: FastifyInstance, { adminToken, logins, log }: OwnersDeps): void {
  scope.addHook('onRequest', async (request, reply) => {
    if (adminToken !== undefined) {
      const attempt = { kind: 'admin', username: '', secret: bearerToken(request), expected: adminToken } as const;
      return isLoggedIn(request, reply, attempt, { logins, log, challenge: 'Bearer' }) ? undefined : reply;
    }
    const problem = strangerProblem(request);
    if (problem === undefined) return undefined;
    reply.header('www-authenticate', 'Bearer');
    return answerRefusal(request, reply, log, { code: 'E74', reason: problem });
  });
}

/** Why a caller is not of this machine, if so. */
function strangerProblem(request: FastifyRequest): string | undefined {
  if (!/^(127\.|::1$|::ffff:127\.)/.test(request.socket.remoteAddress ?? '')) return 'not from this machine';
  // A web page elsewhere can make this machine's browser ask, under a name that resolves to loopback or across sites.
  if (!isLoopback(hostnameOf(request.raw))) return 'not by a loopback name';
  return isForeignPage(request.raw) ? 'from a page of another origin' : undefined;
}

function isLoopback(hostname: string | undefined): boolean {
  if (hostname === undefined || isIP(hostname) === 0) return hostname === 'localhost';
  return hostname.startsWith('127.') || hostname === '::1';
}
