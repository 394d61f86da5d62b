import pg, { type ClientConfig } from 'pg';
import { PayboxError, reasonOf } from '../../../lib/errors.ts';
import type { Logger } from '../../../lib/log.ts';
import type { GroupCommit, SyncConnection } from './group-commit.ts';
import type { LockHolder } from './lock-holder.ts';
import type { OwnSessions } from './own-sessions.ts';
import { limitSession, nameOf } from './postgres-session.ts';

interface Deps {
  databaseUrl: string;
  config: ClientConfig;
  holder: LockHolder;
  commits: GroupCommit;
  log: Logger;
  own: OwnSessions;
  /** Aborted when the store closes. */
  closing: AbortSignal;
}

/**
 * Returns a function that opens the second connection to a database if it is missing, and closes one that no longer
 * answers. It never throws, because without that connection commits wait on the first one. Only a gateway that has just
 * used the first connection may call it: so the second never takes the place of the first at a server with few
 * connections.
 */
export function secondConnection(deps: Deps): () => Promise<void> {
  const { commits, log, closing } = deps;
  let open: { client: pg.Client; connection: SyncConnection } | undefined;
  let isMissing = false;
  return async () => {
    const { client, connection } = open ?? {};
    if (commits.hasSecond) {
      await client?.query('select 1').catch(() => commits.closeSecond(connection));
      return;
    }
    try {
      open = await connect(deps);
      if (closing.aborted) open.connection.close();
      else commits.openedSecond(open.connection);
      isMissing = false;
    } catch (error) {
      if (isMissing) return;
      isMissing = true;
      const fix = 'commits are slower until it can: let the user of databaseUrl have two connections';
      log.warn('second-connection-failed', { database: nameOf(deps.databaseUrl), reason: reasonOf(error), fix });
    }
  };
}

async function connect({
  config,
  holder,
  commits,
  own,
}: Deps): Promise<{ client: pg.Client; connection: SyncConnection }> {
  const client = new pg.Client(config);
  const close = () => void client.end().catch(() => undefined);
  const connection = { sync: (hasWritten: boolean) => syncOver(client, holder, hasWritten), close };
  const ended = () => commits.closeSecond(connection);
  client.on('error', ended);
  client.on('end', ended);
  holder.watch(client);
  try {
    await client.connect();
    await limitSession(client);
    // The address may lead to another server by now. The disk of that server proves nothing about the commits here.
    await own.assertSameServer(client);
  } catch (error) {
    close();
    throw error;
  }
  return { client, connection };
}

async function syncOver(client: pg.Client, holder: LockHolder, hasWritten: boolean): Promise<boolean> {
  try {
    await holder.sync(client, hasWritten);
    return true;
  } catch (error) {
    // After a timeout, the callers have waited long enough.
    if (error instanceof PayboxError || /timeout/.test(reasonOf(error))) throw error;
    return false;
  }
}
