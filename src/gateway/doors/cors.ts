import type { FastifyInstance } from 'fastify';
import type { Logger } from '../../lib/log.ts';
import { LENIENT_HEADER, REASON_HEADER, WARNING_HEADER } from '../../protocol/http-api.ts';
import { answerRefusal } from '../access/requests.ts';

const PREFLIGHT_SECONDS = 600;

/**
 * Lets pages of these origins call the routes of a scope at `paths` by POST (PROTOCOL.md, clause LEN-6). Without
 * origins nothing changes.
 */
export function allowOrigins(
  scope: FastifyInstance,
  paths: readonly string[],
  { origins, log }: { origins: readonly string[]; log: Logger },
): void {
  if (origins.length === 0) return;
  scope.addHook('onRequest', async (request, reply) => {
    reply.header('vary', 'origin');
    const { origin = '' } = request.headers;
    if (!origins.includes(origin)) return;
    const exposed = [REASON_HEADER, LENIENT_HEADER, WARNING_HEADER, 'retry-after', 'www-authenticate'].join(', ');
    reply.header('access-control-allow-origin', origin).header('access-control-expose-headers', exposed);
  });
  for (const path of paths) {
    scope.options(path, { config: { access: 'own' } }, async (request, reply) => {
      if (!origins.includes(request.headers.origin ?? '')) {
        reply.header('allow', 'POST');
        return answerRefusal(request, reply, log, { code: 'E46', reason: 'Origin: expected one listed in cors' }, 405);
      }
      reply
        .header('access-control-allow-methods', 'POST')
        .header('access-control-allow-headers', 'authorization, content-type')
        .header('access-control-max-age', String(PREFLIGHT_SECONDS));
      // Chrome asks first when a page of the internet calls a machine of the local network.
      if (request.headers['access-control-request-private-network'] === 'true') {
        reply.header('access-control-allow-private-network', 'true');
      }
      return reply.code(204).send();
    });
  }
}
