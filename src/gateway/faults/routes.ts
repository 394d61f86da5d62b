import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { issuesOf } from '../../protocol/codec.ts';
import { type ActiveFaultView, type FaultName, type FaultOrder, faultOrder } from '../../protocol/faults.ts';
import { sharedIdOf } from '../access/carried.ts';
import { logRefusal, readBody } from '../access/requests.ts';
import { type Refusal, type Result, refuse } from '../common/result.ts';
import type { Stored } from '../common/stored.ts';
import type { World } from '../common/world.ts';

const ORDER_BYTES_MAX = 4_096;

/** A fault that an admin can order. */
export interface OfferedFault {
  name: FaultName;
  place: string;
  about: string;
  seconds: number | null;
  /** The content of a payment or push that orders it. Null if there is none. */
  magic: string | null;
  /** True if it can be ordered for one box. */
  isPerBox: boolean;
}

/** Lists, orders and ends faults, for `/_mock/faults`. */
export interface FaultOrders {
  /** Empty outside a sandbox. */
  offered(): OfferedFault[];
  active(): ActiveFaultView[];
  /**
   * Orders a fault. With `sharedId`, all shards of a cluster have it under that id, and it happens as often as ordered
   * in all of them together.
   */
  order(order: FaultOrder, sharedId?: string): Result<ActiveFaultView>;
  /** Ends a fault. Returns whether it was active. */
  end(id: string): boolean;
  endAll(): void;
}

/** Serves the routes outside a sandbox. */
const NO_FAULTS: FaultOrders = {
  offered: () => [],
  active: () => [],
  order: () => refuse('E75', 'not a sandbox: no faults can be ordered'),
  end: () => false,
  endAll: () => undefined,
};

/** Registers the routes of faults, below `/_mock` (PROTOCOL.md, clauses FLT-1 and FLT-3). */
export function faultRoutes(
  scope: FastifyInstance,
  { log }: World,
  { directory }: Stored,
  faults: FaultOrders = NO_FAULTS,
): void {
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
