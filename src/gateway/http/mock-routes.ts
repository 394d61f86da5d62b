import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Clock } from '../../lib/clock.ts';
import type { EventStream } from '../../lib/event-stream.ts';
import type { Logger } from '../../lib/log.ts';
import type { MessageSigner } from '../boxes/message-signer.ts';
import type { Changes } from '../changes.ts';
import type { GatewayConfig } from '../config.ts';
import type { Logins } from '../logins.ts';
import type { Service } from '../service.ts';
import { requireAdmin } from './admin.ts';
import { answerRefusal, openStream } from './requests.ts';
import type { Views } from './views.ts';

const ROWS_DEFAULT = 50;
const ROWS_MAX = 500;
const WATCHERS_MAX = 100;

/** The demo's password is public: the console may show it. Others it shows as a blank to fill in. */
const DEMO_PASSWORD = 'demo-secret';

/** `before`: only what is older than the row of this id, for the next page of a list. */
export const listQuery = z.object({
  limit: z.coerce.number().int().min(1).max(ROWS_MAX).default(ROWS_DEFAULT),
  before: z.string().optional(),
});

export interface MockRoutesDeps {
  config: GatewayConfig;
  service: Service;
  signer: Pick<MessageSigner, 'kid' | 'rotate'>;
  logins: Logins;
  views: Views;
  changes: Changes;
  clock: Clock;
  log: Logger;
  baseUrl: () => string;
}

/** What the mock adds to the service, for developers and their tests. Returns what ends its streams. */
export function mockRoutes(scope: FastifyInstance, deps: MockRoutesDeps): () => void {
  const { service, signer, views, changes, logins, log, clock } = deps;
  requireAdmin(scope, { adminToken: deps.config.adminToken, logins, log });

  const unknown = (request: FastifyRequest, reply: FastifyReply, reason: string) =>
    answerRefusal(request, reply, log, { code: 'E96', reason }, 404);
  const list = (path: string, read: (limit: number, before?: string) => object[] | Promise<object[]>) =>
    scope.get(path, async (request, reply) => {
      const query = listQuery.safeParse(request.query);
      if (query.success) return read(query.data.limit, query.data.before);
      return answerRefusal(request, reply, log, { code: 'E46', reason: `limit: 1 to ${ROWS_MAX}` });
    });

  scope.get('/about', async () => about(deps));
  list('/boxes', () => views.boxes());
  list('/orders', (limit, before) => views.orders(limit, before));
  list('/payments', (limit, before) => views.payments(limit, before));
  scope.get<{ Params: { terminalCode: string } }>('/boxes/:terminalCode', async (request, reply) => {
    return views.box(request.params.terminalCode) ?? unknown(request, reply, 'no such box');
  });
  scope.post<{ Params: { orderId: string } }>('/orders/:orderId/cancel', async (request, reply) => {
    const verdict = await service.cancelOrder(request.params.orderId);
    if (verdict.ok) return { status: 'SUCCESS', message: '' };
    return answerRefusal(request, reply, log, verdict, verdict.code === 'E96' ? 404 : 400);
  });
  scope.post<{ Params: { orderId: string } }>('/orders/:orderId/pay', async (request, reply) => {
    const verdict = await service.payOrder(request.params.orderId);
    if (verdict.ok) return { status: 'SUCCESS', message: verdict.value };
    return answerRefusal(request, reply, log, verdict, verdict.code === 'E96' ? 404 : 400);
  });
  scope.get('/keys', async () => ({ kid: signer.kid }));
  scope.post('/keys/rotate', async () => {
    await signer.rotate();
    return { status: 'SUCCESS', message: signer.kid };
  });
  return watchRoute(scope, changes, clock);
}

function watchRoute(scope: FastifyInstance, changes: Changes, clock: Clock): () => void {
  const watchers = new Set<EventStream>();
  scope.get('/events', (_request, reply) => {
    const [oldest] = watchers;
    if (watchers.size >= WATCHERS_MAX) oldest?.end();
    const stream = openStream(reply, clock);
    watchers.add(stream);
    const unwatch = changes.watch((topic) => stream.send({ data: topic }));
    void stream.ended.then(() => {
      unwatch();
      watchers.delete(stream);
    });
  });
  return () => {
    for (const stream of watchers) stream.end();
  };
}

function about({ config, baseUrl }: MockRoutesDeps): object {
  const partner = config.partners.find((it) => it.accounts.length > 0);
  const box = config.boxes.find((it) => it.account !== undefined && partner?.accounts.includes(it.account));
  const account = config.accounts.find((it) => it.bankAccount === (box?.account ?? partner?.accounts[0]));
  return {
    baseUrl: baseUrl(),
    sandbox: config.sandbox,
    partner:
      partner === undefined
        ? null
        : { username: partner.username, password: partner.password === DEMO_PASSWORD ? DEMO_PASSWORD : null },
    account: account ?? null,
    box: box === undefined ? null : { terminalCode: box.terminalCode, serialNumber: box.serialNumber },
  };
}
