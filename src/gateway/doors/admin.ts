import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { reasonOf } from '../../lib/errors.ts';
import type { Caller } from '../access/authorizer.ts';
import type { Access } from '../access/own-route.ts';
import { pathOf } from '../access/requests.ts';
import type { Stored } from '../common/stored.ts';
import type { World } from '../common/world.ts';
import type { CancelledOrder } from '../partner/cancel-order.ts';
import type { OpenGateway } from '../stages/open-gateway.ts';

const CALLER = 'caller';
/** The property of a request in which its route says what it has changed. */
const CHANGED = 'changed';

/** A change that a call made, for the audit list. */
export interface Changed {
  target: string;
  /** Names and values, none of them secret. */
  detail: object;
}

/**
 * Lets each caller do what their role may do, and records who did it (PROTOCOL.md, clauses ROL-1 and ROL-2). Must be
 * called before the routes are registered. Throws when a route is registered that does not say who may call it.
 */
export function guardRoutes(app: FastifyInstance, { world, stored, access }: OpenGateway): void {
  const { authorizer } = access;
  const accessOf = (request: FastifyRequest): Access | undefined => request.routeOptions.config.access;
  app.addHook('onRoute', ({ method, url, config: own }) => {
    if (own?.access === undefined) throw new Error(`${method} ${url}: expected config.access to say who may call it`);
  });
  app.decorateRequest(CALLER, null);
  app.decorateRequest(CHANGED, null);
  app.addHook('onRequest', async (request, reply) => {
    const right = accessOf(request);
    if (right === 'anybody' || right === 'own') return undefined;
    const caller = await authorizer.authorize(right ?? 'administer', request, reply);
    if (caller === undefined) return reply;
    request.setDecorator(CALLER, caller);
    return undefined;
  });
  // A body may arrive 20 s after its head. In that time somebody may revoke the token of its sender, or take a box from
  // it.
  app.addHook('preHandler', async (request, reply) => {
    const right = accessOf(request);
    const caller = request.getDecorator<Caller | null>(CALLER);
    if (caller?.digest === undefined || request.method === 'GET' || right === 'anybody' || right === 'own') return;
    const again = await authorizer.authorize(right ?? 'administer', request, reply);
    if (again === undefined) return reply;
    request.setDecorator(CALLER, again);
  });
  app.addHook('onSend', (request, reply) => noteCall(request, reply, world, stored));
}

/** Returns who calls a route that asks for a right or a role. Throws on any other route. */
export function callerOf(request: FastifyRequest): Caller {
  const caller = request.getDecorator<Caller | null>(CALLER);
  if (caller === null) throw new Error(`${pathOf(request)}: nobody has checked who calls`);
  return caller;
}

/**
 * Records what the call of an audited route has changed, or 'nothing' if it was done before. Without it the audit list
 * has the path of the call.
 */
export function tellChanged(request: FastifyRequest, changed: Changed | 'nothing'): void {
  request.setDecorator(CHANGED, changed);
}

/** Returns a cancellation under the id of its order, whichever name the caller used for it. */
export function cancellationOf({ order, hasChanged }: CancelledOrder, list: 'orders' | 'sales'): Changed | 'nothing' {
  if (!hasChanged) return 'nothing';
  const { id, order_id, amount, terminal_code } = order;
  const name = list === 'sales' ? 'code' : 'orderId';
  return { target: `${list}/${id}`, detail: { [name]: order_id, amount, box: terminal_code } };
}

/** Logs who changed something. The audit list has it too, before the answer is sent. */
async function noteCall(request: FastifyRequest, reply: FastifyReply, world: World, stored: Stored): Promise<void> {
  const caller = request.getDecorator<Caller | null>(CALLER);
  if (caller === null || request.method === 'GET' || reply.statusCode >= 300) return;
  const changed = request.getDecorator<Changed | 'nothing' | null>(CHANGED);
  if (changed === 'nothing') return;
  const { who, role, address } = caller;
  world.log.info('admin-called', { who, role, address, method: request.method, path: pathOf(request) });
  const what = request.routeOptions.config.audit;
  if (what === undefined) return;
  const target = pathOf(request).replace(/^\/(?:_mock|admin\/v1)\/(.*?)(?:\/[a-z]+)?$/, '$1');
  await noteDone(caller, what, changed ?? { target, detail: {} }, world, stored);
}

/** Adds to the audit list what a caller did. The registry adds its changes itself. Never rejects. */
export async function noteDone(
  { who, address }: Caller,
  what: string,
  { target, detail }: Changed,
  { clock, log }: World,
  { store }: Stored,
): Promise<void> {
  try {
    await store.registry.note({ at_ms: clock.wallMs(), who, address, what, target, detail: JSON.stringify(detail) });
  } catch (error) {
    // The change is made: a refusal now would make the caller repeat it.
    log.error('audit-not-written', { who, address, what, target, reason: reasonOf(error) });
  }
}
