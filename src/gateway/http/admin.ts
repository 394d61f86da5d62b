import type { FastifyInstance, FastifyRequest } from 'fastify';
import { hostnameOf, isForeignPage, strangerProblem } from '../../lib/http-guard.ts';
import type { Logger } from '../../lib/log.ts';
import { isLoopbackHost } from '../../lib/tls.ts';
import type { Logins } from '../logins.ts';
import { answerRefusal, bearerToken, isLoggedIn } from './requests.ts';

export interface AdminGuardDeps {
  /** Whoever has it is an owner; without one, whoever is on this machine. */
  adminToken: string | undefined;
  logins: Logins;
  log: Logger;
}

/** Opens the routes of a scope to programs and pages of this machine only or, with an admin token, to whoever has it. */
export function requireAdmin(scope: FastifyInstance, { adminToken, logins, log }: AdminGuardDeps): void {
  scope.addHook('onRequest', async (request, reply) => {
    if (adminToken !== undefined) {
      const attempt = { kind: 'admin', username: '', secret: bearerToken(request), expected: adminToken } as const;
      return isLoggedIn(request, reply, attempt, { logins, log, challenge: 'Bearer' }) ? undefined : reply;
    }
    const problem = problemOf(request);
    if (problem === undefined) return undefined;
    reply.header('www-authenticate', 'Bearer').header('x-paybox-reason', problem);
    return answerRefusal(request, reply, log, { code: 'E74', reason: problem });
  });
}

/** Why a caller is no program or page of this machine, if so, with what to do. */
function problemOf(request: FastifyRequest): string | undefined {
  const stranger = strangerProblem(request.raw);
  if (stranger !== undefined) return `${stranger}: set adminToken, and send it as a bearer`;
  // A web page elsewhere can make this machine's browser ask, under a name that resolves to loopback or across sites.
  if (!isLoopbackHost(hostnameOf(request.raw) ?? '')) return 'not by a loopback name';
  return isForeignPage(request.raw) ? 'from a page of another origin' : undefined;
}
