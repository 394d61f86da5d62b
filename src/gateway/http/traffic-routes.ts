import type { FastifyInstance, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../lib/log.ts';
import { WIRE_PAGE_MAX } from '../../protocol/wire.ts';
import type { TrafficLog } from '../traffic-log.ts';
import { answerRefusal, pathOf } from './requests.ts';

const wireQuery = z.object({
  since: z.coerce.number().int().min(0).default(0),
  limit: z.coerce.number().int().min(1).max(WIRE_PAGE_MAX).default(WIRE_PAGE_MAX),
});

/** `GET /_mock/wire`: what the gateway heard and said. */
export function trafficRoutes(scope: FastifyInstance, { wire, log }: { wire: TrafficLog; log: Logger }): void {
  scope.get('/wire', async (request, reply) => {
    const query = wireQuery.safeParse(request.query);
    if (query.success) return wire.since(query.data.since, query.data.limit);
    const reason = `since: 0 or more; limit: 1 to ${WIRE_PAGE_MAX}`;
    return answerRefusal(request, reply, log, { code: 'E46', reason });
  });
}

interface CallLogDeps {
  wire: Pick<TrafficLog, 'call'>;
  clock: Clock;
}

/** Has the wire hear what owners have done; a stranger's try, and a look, is nothing that was done. */
export function logAdminRequests(scope: FastifyInstance, deps: CallLogDeps): void {
  logCalls(scope, '', deps, (request, status) => (request.method === 'GET' || status === 401 ? undefined : null));
}

/**
 * Has the wire hear the calls of a scope, with what they are answered; before the scope has other hooks. Paths are told
 * without `prefix`. `byWhom`: the partner who has shown to be one, null for others; undefined for what is not to be told.
 */
export function logCalls(
  scope: FastifyInstance,
  prefix: string,
  { wire, clock }: CallLogDeps,
  byWhom: (request: FastifyRequest, status: number) => string | null | undefined,
): void {
  const begunMs = new WeakMap<FastifyRequest, number>();
  scope.addHook('onRequest', async (request) => void begunMs.set(request, clock.monotonicMs()));
  scope.addHook('onSend', async (request, reply, payload) => {
    const by = byWhom(request, reply.statusCode);
    if (by === undefined) return;
    const nowMs = clock.monotonicMs();
    wire.call({
      by,
      method: request.method,
      path: pathOf(request).slice(prefix.length),
      body: Buffer.isBuffer(request.body) ? request.body.toString('utf8') : '',
      status: reply.statusCode,
      answer: typeof payload === 'string' ? payload : '',
      tookMs: nowMs - (begunMs.get(request) ?? nowMs),
    });
  });
}
