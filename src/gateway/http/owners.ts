import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Logger } from '../../lib/log.ts';
import { answerRefusal, bearerToken, isSecret } from './requests.ts';

/** Opens the routes of a scope to programs and pages of this machine only or, with an admin token, to whoever has it. */
export function forOwnersOnly(scope: FastifyInstance, adminToken: string | undefined, log: Logger): void {
  scope.addHook('onRequest', async (request, reply) => {
    const problem = accessProblem(request, adminToken);
    if (problem === undefined) return;
    reply.header('www-authenticate', 'Bearer');
    return answerRefusal(request, reply, log, { code: 'E74', reason: problem });
  });
}

/** Why a caller is no owner, if so. */
function accessProblem(request: FastifyRequest, adminToken: string | undefined): string | undefined {
  if (adminToken !== undefined) {
    return isSecret(bearerToken(request) ?? '', adminToken) ? undefined : 'no admin token, or a wrong one';
  }
  if (!/^(127\.|::1$|::ffff:127\.)/.test(request.socket.remoteAddress ?? '')) return 'not from this machine';
  // A web page elsewhere can make this machine's browser ask, under a name that resolves to loopback or across sites.
  if (!/^(localhost|127\.[\d.]+|\[::1\])(:\d+)?$/i.test(request.headers.host ?? '')) return 'not by a loopback name';
  const { origin } = request.headers;
  if (origin !== undefined && origin !== `http://${request.headers.host}`) return 'from a page of another origin';
  return undefined;
}
