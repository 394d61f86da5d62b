import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { issuesOf } from '../../protocol/codec.ts';
import { faultOrder } from '../../protocol/faults.ts';
import { carriedOf } from '../access/carried.ts';
import { logRefusal, readBody } from '../access/requests.ts';
import { type Refusal, refuse } from '../result.ts';
import type { OpenGateway } from '../stages/open-gateway.ts';

const ORDER_BYTES_MAX = 4_096;
/** Set by the front of a cluster: the id of a fault that it orders at all shards. */
export const FAULT_ID_HEADER = 'x-paybox-fault';

/** Routes of faults, below `/_mock` (PROTOCOL.md, clauses FLT-1 and FLT-3). */
export function faultRoutes(scope: FastifyInstance, { world, edges, stored }: OpenGateway): void {
  const { log } = world;
  const { faults } = edges;
  const { directory } = stored;
  /** The answer contains the reason, because only admins get it. */
  const answer = (request: FastifyRequest, reply: FastifyReply, refusal: Refusal, status = 400) => {
    logRefusal(request, log, refusal, status);
    return reply.code(status).send({ status: 'FAILED', message: refusal.code, reason: refusal.reason });
  };
  scope.get('/faults', async () => ({ faults: faults.offered(), standing: faults.active() }));
  scope.post('/faults', { bodyLimit: ORDER_BYTES_MAX }, async (request, reply) => {
    const json = readBody(request, log);
    if (!json.ok) return answer(request, reply, json);
    const order = faultOrder.safeParse(json.value);
    if (!order.success)
      return answer(request, reply, refuse('E46', issuesOf(order.error, { schema: faultOrder, value: json.value })));
    const { box } = order.data;
    if (box !== undefined && (await directory.box(box)) === undefined) {
      return answer(request, reply, refuse('E35', `box: ${box} is not in the system`));
    }
    const ordered = faults.order(order.data, sharedIdOf(request));
    return ordered.ok ? reply.code(201).send(ordered.value) : answer(request, reply, ordered);
  });
  scope.delete('/faults', async (_request, reply) => {
    faults.endAll();
    return reply.code(204).send();
  });
  scope.delete<{ Params: { id: string } }>('/faults/:id', async (request, reply) => {
    if (faults.end(request.params.id)) return reply.code(204).send();
    return answer(
      request,
      reply,
      refuse('E96', 'no such fault is active: GET /_mock/faults lists the active ones'),
      404,
    );
  });
}

function sharedIdOf({ raw, headers }: FastifyRequest): string | undefined {
  const id = carriedOf(raw) === undefined ? undefined : headers[FAULT_ID_HEADER];
  return typeof id === 'string' ? id : undefined;
}
