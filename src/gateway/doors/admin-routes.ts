import { pipeline } from 'node:stream/promises';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { withAbortAfter } from '../../lib/clock.ts';
import { PayboxError, reasonOf } from '../../lib/errors.ts';
import type { EventStream } from '../../lib/event-stream.ts';
import type { Caller } from '../access/authorizer.ts';
import { answerRefusal, listQuery, logRefusal, openStream, ROWS_MAX } from '../access/requests.ts';
import { mayDo } from '../access/roles.ts';
import { accept, type Result } from '../common/result.ts';
import type { OpenGateway } from '../stages/open-gateway.ts';
import type { Store } from '../store/store.ts';
import { callerOf, cancellationOf, noteDone, refuseSandboxWrites, tellChanged } from './admin.ts';
import { callbackRoutes } from './callback-routes.ts';
import { logAdminRequests, trafficRoutes } from './traffic-routes.ts';
import { createViews, sourceView, type Views } from './views.ts';

/** Readers of the console's events. */
export const WATCHERS_MAX = 100;
export const CONSOLE_EVENTS_PATH = '/_mock/events';
/** More boxes than fit into the gateway's file. */
const BOXES_LISTED_MAX = 10_000;
const boxesQuery = z.object({
  limit: z.coerce.number().int().min(1).max(BOXES_LISTED_MAX).default(BOXES_LISTED_MAX),
  after: z.string().optional(),
});
/** The password of the demo is public, so the console may show it. Others are left blank. */
const DEMO_PASSWORD = 'demo-secret';
/** A backup may be large, and its reader slow. */
const DOWNLOAD_TIMEOUT_MS = 600_000;
/** Setting with the calendar time of the newest backup. */
const BACKUP_AT = 'backup-at-ms';

/** Routes for admins, below `/_mock`. Returns a function that ends their streams and downloads. */
export function adminRoutes(scope: FastifyInstance, open: OpenGateway): () => void {
  const { world, stored, boxes } = open;
  logAdminRequests(scope, world);
  refuseSandboxWrites(scope, world);
  const views = createViews(world, stored, boxes);
  orderRoutes(scope, open, views);
  callbackRoutes(scope, open, views);
  trafficRoutes(scope, world);
  const endStreams = watchRoute(scope, open);
  const endDownloads = backupRoute(scope, open);
  return () => {
    endStreams();
    endDownloads();
  };
}

function orderRoutes(scope: FastifyInstance, open: OpenGateway, views: Views): void {
  const { world, stored, boxes, money, boxScreen } = open;
  const { log } = world;
  const { service } = money;
  const { signer } = boxes;
  const list = (path: string, read: (limit: number, before?: string) => object[] | Promise<object[]>) =>
    scope.get(path, async (request, reply) => {
      const query = listQuery.safeParse(request.query);
      if (query.success) return read(query.data.limit, query.data.before);
      return answerRefusal(request, reply, log, { code: 'E46', reason: `limit: 1 to ${ROWS_MAX}` });
    });
  type OfOrder = { Params: { orderId: string } };
  const answer = (request: FastifyRequest, reply: FastifyReply, result: Result<string | undefined>) => {
    if (result.ok) return reply.send({ status: 'SUCCESS', message: result.value ?? '' });
    return answerRefusal(request, reply, log, result, result.code === 'E96' ? 404 : 400);
  };

  scope.get('/about', async (request) => ({
    ...(await about(open, callerOf(request))),
    lastBackupAt: await lastBackup(stored.store),
  }));
  scope.get('/boxes', async (request, reply) => {
    const query = boxesQuery.safeParse(request.query);
    if (query.success) return views.boxes(query.data);
    return answerRefusal(request, reply, log, { code: 'E46', reason: `limit: 1 to ${BOXES_LISTED_MAX}` });
  });
  list('/orders', (limit, before) => views.orders(limit, before));
  list('/payments', (limit, before) => views.payments(limit, before));
  list('/credits', (limit, before) => views.credits(limit, before));
  scope.get<{ Params: { terminalCode: string } }>('/boxes/:terminalCode', async (request, reply) => {
    const box = await views.box(request.params.terminalCode);
    return box ?? answerRefusal(request, reply, log, { code: 'E96', reason: 'no such box' }, 404);
  });
  scope.get<{ Params: { terminalCode: string } }>('/boxes/:terminalCode/screen.png', async (request, reply) => {
    const isHere = boxScreen?.terminalCode === request.params.terminalCode;
    const png = isHere ? boxScreen?.picture() : undefined;
    if (png !== undefined) return reply.type('image/png').header('cache-control', 'no-store').send(Buffer.from(png));
    const reason = 'the screen of this box is not known here: only that of the box of paybox up is';
    return answerRefusal(request, reply, log, { code: 'E96', reason }, 404);
  });
  scope.post<OfOrder>('/orders/:orderId/cancel', async (request, reply) => {
    const cancelled = await service.cancelOrder(request.params.orderId);
    if (!cancelled.ok) return answer(request, reply, cancelled);
    tellChanged(request, cancellationOf(cancelled.value, 'orders'));
    return answer(request, reply, accept(undefined));
  });
  scope.post<OfOrder>('/orders/:orderId/pay', async (request, reply) =>
    answer(request, reply, await service.payOrder(request.params.orderId)),
  );
  scope.get('/sources', async () => money.sources.catchUp.status().map(sourceView));
  scope.get('/keys', async () => ({ kid: signer.kid }));
  scope.post('/keys/rotate', async () => {
    await signer.rotate();
    return { status: 'SUCCESS', message: signer.kid };
  });
}

function watchRoute(
  scope: FastifyInstance,
  { world: { changes, clock }, access: { authorizer } }: OpenGateway,
): () => void {
  const watchers = new Set<EventStream>();
  scope.get('/events', (request, reply) => {
    const [oldest] = watchers;
    if (watchers.size >= WATCHERS_MAX) oldest?.end();
    const stream = openStream(reply, clock);
    watchers.add(stream);
    const unwatch = changes.watch((topic) => stream.send({ data: topic }));
    const release = authorizer.whenRevoked(callerOf(request), () => stream.end());
    void stream.ended.then(() => {
      unwatch();
      release();
      watchers.delete(stream);
    });
  });
  return () => {
    for (const stream of watchers) stream.end();
  };
}

/** The store as a file (PROTOCOL.md, clause BAK-1). Returns a function that ends the downloads. */
function backupRoute(scope: FastifyInstance, { world, stored, access: { authorizer } }: OpenGateway): () => void {
  const { clock, log } = world;
  const { store } = stored;
  const ending = new AbortController();
  scope.get('/backup', async (request, reply) => {
    let copy: Awaited<ReturnType<Store['backup']>>;
    try {
      copy = await store.backup();
    } catch (error) {
      if (!(error instanceof PayboxError) || error.code !== 'NO_BACKUP') throw error;
      logRefusal(request, log, { code: 'NO_BACKUP', reason: error.message }, 409);
      const { code, message, fix } = error;
      return reply.code(409).send({ status: 'FAILED', message: code, reason: `${message}: ${fix}` });
    }
    const { size } = await copy.stat();
    const caller = callerOf(request);
    await noteDone(caller, 'taken', { target: 'backup', detail: {} }, world, stored);
    const over = new AbortController();
    const release = authorizer.whenRevoked(caller, () => over.abort(new Error('its token was revoked')));
    reply.hijack();
    reply.raw.writeHead(200, { 'content-type': 'application/vnd.sqlite3', 'content-length': size });
    const send = (signal: AbortSignal) => pipeline(copy.createReadStream(), reply.raw, { signal });
    try {
      const either = AbortSignal.any([ending.signal, over.signal]);
      await withAbortAfter(clock, DOWNLOAD_TIMEOUT_MS, either, send);
      log.info('backup-taken', { bytes: size, who: caller.who, address: caller.address });
      const at = String(clock.wallMs());
      if ((await store.setting(BACKUP_AT, () => at)) !== at) await store.replaceSetting(BACKUP_AT, at);
    } catch (error) {
      log.warn('backup-not-taken', { bytes: size, reason: reasonOf(error) });
    } finally {
      release();
    }
    return reply;
  });
  return () => ending.abort();
}

/** When the store was last handed out whole; null if it never was. A backup of PostgreSQL is not known here. */
async function lastBackup(store: Store): Promise<string | null> {
  const at = await store.setting(BACKUP_AT, () => '');
  return at === '' ? null : new Date(Number(at)).toISOString();
}

/** For the commands of a demo: a box that is linked, its account and its partner. */
async function about({ world, stored, boxScreen, origin }: OpenGateway, { role }: Caller): Promise<object> {
  const { config } = world;
  const { directory } = stored;
  const [linked] = await directory.linkedBoxes(1);
  const [first = ''] = await directory.partners(1);
  const [account] =
    linked === undefined ? await directory.accountsOf(first, 1) : [await directory.account(linked.account ?? '')];
  const partner = await directory.partner(account?.partner ?? first);
  return {
    baseUrl: `${origin()}${config.basePath}`,
    sandbox: config.sandbox,
    mode: config.mode,
    partner:
      partner === undefined
        ? null
        : {
            username: partner.username,
            password: mayDo(role, 'administer') && partner.password === DEMO_PASSWORD ? DEMO_PASSWORD : null,
            hasCallback: partner.callback !== undefined,
          },
    account: account === undefined ? null : await directory.accountOf({ account: account.bankAccount }),
    box: linked === undefined ? null : { terminalCode: linked.terminalCode, serialNumber: linked.serialNumber },
    boxPage: linked !== undefined && linked.terminalCode === boxScreen?.terminalCode ? boxScreen.pageUrl : null,
  };
}
