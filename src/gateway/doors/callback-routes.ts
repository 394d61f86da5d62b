import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { issuesOf } from '../../protocol/codec.ts';
import { answerRefusal, listQuery, readBody } from '../access/requests.ts';
import type { OpenGateway } from '../stages/open-gateway.ts';
import { callerOf } from './admin.ts';
import type { Views } from './views.ts';

const CHOICE_BYTES_MAX = 4_096;
const NAME_CHARS_MAX = 64;

const callbacksQuery = listQuery.extend({ status: z.enum(['pending', 'delivered', 'failed']).optional() });

const time = z.iso.datetime({ offset: true, error: 'expected a time as 2026-01-31T08:00:00Z' }).transform(Date.parse);
/** Callbacks to send again; by default all failed ones. */
const choice = z.strictObject({
  partner: z.string().max(NAME_CHARS_MAX).optional(),
  from: time.optional(),
  to: time.optional(),
  status: z.enum(['failed', 'pending']).default('failed'),
});

/** Routes of callbacks, below `/_mock` (PROTOCOL.md, clause SYN-5). */
export function callbackRoutes(scope: FastifyInstance, { world, stored, money }: OpenGateway, views: Views): void {
  const { log } = world;
  const { store, directory } = stored;
  const { dispatcher, backlog } = money;
  const refuse = (request: FastifyRequest, reply: FastifyReply, reason: string) =>
    answerRefusal(request, reply, log, { code: 'E46', reason });
  const unknown = (request: FastifyRequest, reply: FastifyReply) =>
    answerRefusal(request, reply, log, { code: 'E96', reason: 'no such callback' }, 404);

  scope.get('/callbacks', async (request, reply) => {
    const query = callbacksQuery.safeParse(request.query);
    if (!query.success)
      return refuse(request, reply, issuesOf(query.error, { schema: callbacksQuery, value: request.query }));
    const { limit, before, status } = query.data;
    return views.callbacks(callerOf(request).role, limit, before, status);
  });
  scope.get('/callbacks/backlog', async (_request, reply) => {
    const owed = await backlog();
    return owed ?? reply.code(503).send({ status: 'FAILED', message: 'E05' });
  });
  scope.get<{ Params: { id: string } }>('/callbacks/:id', async (request, reply) => {
    const callback = await store.callbacks.find(request.params.id);
    return callback === undefined ? unknown(request, reply) : views.callback(callerOf(request).role, callback);
  });
  scope.post('/callbacks/resend', { bodyLimit: CHOICE_BYTES_MAX }, async (request, reply) => {
    const json = request.body === undefined ? { ok: true as const, value: {} } : readBody(request, log);
    if (!json.ok) return answerRefusal(request, reply, log, json);
    const chosen = choice.safeParse(json.value);
    if (!chosen.success) return refuse(request, reply, issuesOf(chosen.error, { schema: choice, value: json.value }));
    const { partner, from: fromMs, to: toMs, status } = chosen.data;
    if (partner !== undefined && (await directory.partner(partner)) === undefined) {
      return answerRefusal(request, reply, log, { code: 'E67', reason: `partner: there is no ${partner}` }, 404);
    }
    const { count, more } = await dispatcher.resendAll({ partner, fromMs, toMs, status });
    return reply.code(202).send({ status: 'SUCCESS', message: '', callbacks: count, more });
  });
  scope.post<{ Params: { id: string } }>('/callbacks/:id/resend', async (request, reply) => {
    const callback = await dispatcher.resend(request.params.id);
    if (callback === 'test') {
      const reason = 'its payment was a test of the sandbox: expected one of money';
      return answerRefusal(request, reply, log, { code: 'E75', reason });
    }
    return callback === undefined ? unknown(request, reply) : views.callback(callerOf(request).role, callback);
  });
}
