import { pipeline } from 'node:stream/promises';
import type { FastifyInstance } from 'fastify';
import { type Clock, withAbortAfter } from '../../lib/clock.ts';
import { PayboxError, reasonOf } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import type { Store } from '../store/store.ts';
import { logRefusal } from './requests.ts';

/** A backup may be large, and its reader far away. */
const TAKEN_TIMEOUT_MS = 600_000;

export interface BackupRoutesDeps {
  store: Pick<Store, 'backup'>;
  clock: Clock;
  log: Logger;
}

/** `GET /_mock/backup`: the store as a file, as it stands now (PROTOCOL.md, clause BAK-1). Returns what cuts those off that are read. */
export function backupRoutes(scope: FastifyInstance, { store, clock, log }: BackupRoutesDeps): () => void {
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
    reply.hijack();
    reply.raw.writeHead(200, { 'content-type': 'application/vnd.sqlite3', 'content-length': size });
    const take = (signal: AbortSignal) => pipeline(copy.createReadStream(), reply.raw, { signal });
    try {
      await withAbortAfter(clock, TAKEN_TIMEOUT_MS, ending.signal, take);
      log.info('backup-taken', { bytes: size });
    } catch (error) {
      log.warn('backup-not-taken', { bytes: size, reason: reasonOf(error) });
    }
    return reply;
  });
  return () => ending.abort();
}
