import { pipeline } from 'node:stream/promises';
import type { FastifyInstance } from 'fastify';
import { withAbortAfter } from '../../lib/clock.ts';
import { PayboxError, reasonOf } from '../../lib/errors.ts';
import type { EventStream } from '../../lib/event-stream.ts';
import { openStream } from '../access/requests.ts';
import { accept, refuse } from '../common/result.ts';
import type { OpenGateway } from '../stages/open-gateway.ts';
import type { Store } from '../store/store.ts';
import { noteDone } from './admin.ts';
import type { OwnApi } from './own-api.ts';

/** At most this many readers follow the console's events at once. */
export const WATCHERS_MAX = 100;
export const CONSOLE_EVENTS_PATH = '/_mock/events';
/** A backup may be large, and its reader slow. */
const DOWNLOAD_TIMEOUT_MS = 600_000;
/** The setting that holds the calendar time of the newest backup. */
const BACKUP_AT = 'backup-at-ms';

/** Registers the events of the console. Returns a function that ends their streams. */
export function watchRoute(
  scope: FastifyInstance,
  api: OwnApi,
  { world: { changes, clock }, access: { authorizer } }: OpenGateway,
): () => void {
  const watchers = new Set<EventStream>();
  api.route(scope, {
    method: 'GET',
    path: '/events',
    access: 'look',
    summary: 'Names of the lists that change, as server-sent events',
    type: 'text/event-stream',
    run: async ({ caller, reply }) => {
      const [oldest] = watchers;
      if (watchers.size >= WATCHERS_MAX) oldest?.end();
      const stream = openStream(reply, clock);
      watchers.add(stream);
      const unwatch = changes.watch((topic) => stream.send({ data: topic }));
      const release = authorizer.whenRevoked(caller, () => stream.end());
      void stream.ended.then(() => {
        unwatch();
        release();
        watchers.delete(stream);
      });
      return accept(undefined);
    },
  });
  return () => {
    for (const stream of watchers) stream.end();
  };
}

/** Registers the store as a file (PROTOCOL.md, clause BAK-1). Returns a function that ends the downloads. */
export function backupRoute(scope: FastifyInstance, api: OwnApi, { world, stored, access }: OpenGateway): () => void {
  const { clock, log } = world;
  const { store } = stored;
  const ending = new AbortController();
  api.route(scope, {
    method: 'GET',
    path: '/backup',
    access: 'administer',
    summary: 'The store as a file of SQLite',
    type: 'application/vnd.sqlite3',
    refusals: ['NO_BACKUP'],
    isReasoned: true,
    run: async ({ caller, reply }) => {
      const copy = await copyOf(store);
      if (!copy.ok) return copy;
      const { size } = await copy.value.stat();
      await noteDone(caller, 'taken', { target: 'backup', detail: {} }, world, stored);
      const over = new AbortController();
      const release = access.authorizer.whenRevoked(caller, () => over.abort(new Error('its token was revoked')));
      reply.hijack();
      reply.raw.writeHead(200, { 'content-type': 'application/vnd.sqlite3', 'content-length': size });
      const send = (signal: AbortSignal) => pipeline(copy.value.createReadStream(), reply.raw, { signal });
      try {
        const either = AbortSignal.any([ending.signal, over.signal]);
        await withAbortAfter(clock, DOWNLOAD_TIMEOUT_MS, either, send);
        log.info('backup-downloaded', { bytes: size, who: caller.who, address: caller.address });
        const at = String(clock.wallMs());
        if ((await store.setting(BACKUP_AT, () => at)) !== at) await store.replaceSetting(BACKUP_AT, at);
      } catch (error) {
        log.warn('backup-failed', { bytes: size, reason: reasonOf(error) });
      } finally {
        release();
      }
      return accept(undefined);
    },
  });
  return () => ending.abort();
}

/** Copies the store. Returns a refusal if this store makes no copies. */
async function copyOf(store: Store) {
  try {
    return accept(await store.backup());
  } catch (error) {
    if (!(error instanceof PayboxError) || error.code !== 'NO_BACKUP') throw error;
    return refuse('NO_BACKUP', `${error.message}: ${error.fix}`);
  }
}

/** Returns when the store was last downloaded whole. Null if it never was. A backup of PostgreSQL is not known here. */
export async function lastBackup(store: Store): Promise<string | null> {
  const at = await store.setting(BACKUP_AT, () => '');
  return at === '' ? null : new Date(Number(at)).toISOString();
}
