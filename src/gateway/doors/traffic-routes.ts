import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Logger } from '../../lib/log.ts';
import { LENIENT_HEADER, REASON_HEADER, WARNING_HEADER } from '../../protocol/http-api.ts';
import { WIRE_PAGE_MAX } from '../../protocol/wire.ts';
import { answerRefusal, pathOf } from '../access/requests.ts';
import type { World } from '../common/world.ts';
import type { TrafficLog } from '../console/traffic-log.ts';

const wireQuery = z.object({
  since: z.coerce.number().int().min(0).default(0),
  limit: z.coerce.number().int().min(1).max(WIRE_PAGE_MAX).default(WIRE_PAGE_MAX),
});

/** `GET /_mock/wire`: the newest entries of the traffic log. `GET /_mock/calls`: calls of partners with a note. */
export function trafficRoutes(
  scope: FastifyInstance,
  { trafficLog, log }: { trafficLog: TrafficLog; log: Logger },
): void {
  scope.get('/wire', async (request, reply) => {
    const query = wireQuery.safeParse(request.query);
    if (query.success) return trafficLog.since(query.data.since, query.data.limit);
    const reason = `since: 0 or more; limit: 1 to ${WIRE_PAGE_MAX}`;
    return answerRefusal(request, reply, log, { code: 'E46', reason });
  });
  scope.get('/calls', async () => trafficLog.noted());
}

const BEGUN_MS = 'begunMs';
/** Between several notes in one header. */
export const NOTES_SEPARATOR = '; ';

/** Statuses of calls that were refused before anything was done. */
const NOT_LET_IN: readonly number[] = [401, 403, 429];

/** Logs changes by admins; not their reads, nor calls of those who may not. */
export function logAdminRequests(scope: FastifyInstance, world: World): void {
  const isLogged = ({ method }: FastifyRequest, status: number) => method !== 'GET' && !NOT_LET_IN.includes(status);
  logCalls(scope, '', world, (request, status) =>
    isLogged(request, status) ? { by: null, isProved: true } : undefined,
  );
}

interface LoggedCaller {
  /** The name under which the call is listed; null without one. */
  by: string | null;
  /** True where the caller has proved who it is. */
  isProved: boolean;
}

/**
 * Writes the calls of a scope into the traffic log, their paths without `prefix`. `callerOf` returns undefined for a
 * call that is not logged.
 */
export function logCalls(
  scope: FastifyInstance,
  prefix: string,
  { trafficLog, clock }: World,
  callerOf: (request: FastifyRequest, status: number) => LoggedCaller | undefined,
): void {
  scope.decorateRequest(BEGUN_MS, 0);
  scope.addHook('onRequest', async (request) => request.setDecorator(BEGUN_MS, clock.monotonicMs()));
  scope.addHook('onSend', async (request, reply, payload) => {
    const caller = callerOf(request, reply.statusCode);
    if (caller === undefined) return;
    const call = {
      by: caller.by,
      method: request.method,
      path: pathOf(request).slice(prefix.length),
      body: Buffer.isBuffer(request.body) ? request.body.toString('utf8') : '',
      status: reply.statusCode,
      reason: headerOf(reply, REASON_HEADER) ?? null,
      lenient: headerOf(reply, LENIENT_HEADER)?.split(NOTES_SEPARATOR) ?? [],
      warnings: headerOf(reply, WARNING_HEADER)?.split(NOTES_SEPARATOR) ?? [],
      answer: typeof payload === 'string' ? payload : '',
      tookMs: clock.monotonicMs() - request.getDecorator<number>(BEGUN_MS),
    };
    trafficLog.call(call, caller.isProved);
  });
}

function headerOf(reply: FastifyReply, name: string): string | undefined {
  const value = reply.getHeader(name);
  return typeof value === 'string' ? value : undefined;
}
