import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { LENIENT_HEADER, REASON_HEADER, WARNING_HEADER } from '../../protocol/http-api.ts';
import { WIRE_PAGE_MAX, wireEntry, wirePage } from '../../protocol/wire.ts';
import { pathOf, wholeNumber } from '../access/requests.ts';
import { accept } from '../common/result.ts';
import { notedCalls, trafficSince } from '../common/shared-traffic.ts';
import type { World } from '../common/world.ts';
import type { OwnApi } from './own-api.ts';

/** The position at one gateway has some 45 characters. */
const SINCE_CHARS_MAX = 10_000;

const wireQuery = z.object({
  since: z
    .string()
    .max(SINCE_CHARS_MAX)
    .regex(/^(\d{1,15}|[\w-]+:\d{1,15}(,[\w-]+:\d{1,15})*)$/, 'expected the next of the page before')
    .default('0')
    .describe('the next of the page before'),
  limit: wholeNumber(1, WIRE_PAGE_MAX).default(WIRE_PAGE_MAX),
});

/** Registers the routes of the traffic log, below `/_mock`. */
export function trafficRoutes(scope: FastifyInstance, api: OwnApi, world: World): void {
  api.route(scope, {
    method: 'GET',
    path: '/wire',
    access: 'look',
    summary: 'Calls, messages, connections and callbacks of the traffic log, oldest first',
    query: wireQuery,
    answer: wirePage,
    run: async ({ query: { since, limit } }) => accept(await trafficSince(world, since, limit)),
  });
  api.route(scope, {
    method: 'GET',
    path: '/calls',
    access: 'look',
    summary: 'Calls of partners that were refused, read leniently or warned of, newest first',
    answer: z.array(wireEntry),
    run: async () => accept(await notedCalls(world)),
  });
}

const BEGUN_MS = 'begunMs';
/** Separates several notes in one header. */
export const NOTES_SEPARATOR = '; ';

/** Statuses of calls that were refused before anything was done. */
const NOT_LET_IN: readonly number[] = [401, 403, 429];

/** Logs changes by admins. It logs neither reads nor calls that were refused for a missing right. */
export function logAdminRequests(scope: FastifyInstance, world: World): void {
  const isLogged = ({ method }: FastifyRequest, status: number) => method !== 'GET' && !NOT_LET_IN.includes(status);
  logCalls(scope, '', world, (request, status) =>
    isLogged(request, status) ? { by: null, isProved: true } : undefined,
  );
}

interface LoggedCaller {
  /** The name under which the call is listed. Null without one. */
  by: string | null;
  /** True where the caller has proved who it is. */
  isProved: boolean;
}

/**
 * Writes the calls of a scope into the traffic log, their paths without `prefix`. A call for which `callerOf` returns
 * undefined is not logged.
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
