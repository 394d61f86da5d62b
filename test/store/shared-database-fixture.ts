import { onTestFinished } from 'vitest';
import { applicationOf, SETUP } from '../../src/gateway/cluster/tables.ts';
import type { Store, StorePlace } from '../../src/gateway/store/store.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { postgresServer } from '../support/stores.ts';
import { opened } from './rows.ts';

/** A server of this `describe`, and stores that share a database of it. */
export function sharedStores(settings: readonly string[] = []) {
  const server = postgresServer(settings);
  const place = async (databaseUrl: string, run: string): Promise<StorePlace> => {
    await server().run(
      databaseUrl,
      `with lane as (insert into cluster.lanes values (abs(hashtext('${run}')), '${run}', now()) on conflict do nothing)
       insert into cluster.gateways (run, name, seen_at, file, alike) values ('${run}', '${run}', now(), '', '{}')`,
    );
    const sharing = { name: run, run, generation: '', application: applicationOf(run) };
    return { dataDir: await temporaryFolder(), databaseUrl, sharing };
  };
  return {
    server,
    place,
    /** An empty database with the tables of a cluster. */
    database: async () => {
      const databaseUrl = await server().database();
      await server().run(databaseUrl, SETUP);
      return databaseUrl;
    },
    /** The stores of these runs, opened at once. */
    open: async (databaseUrl: string, runs: readonly string[] = ['a', 'b']): Promise<Store[]> =>
      Promise.all(runs.map(async (run) => opened(await place(databaseUrl, run)))),
    /** Does what another gateway does with a run that was not seen for too long. */
    bury: async (databaseUrl: string, run: string) => {
      await server().run(databaseUrl, `update cluster.gateways set gone = true where run = '${run}'`);
      await eventually('the end of its sessions', async () => {
        const ended = `select pg_terminate_backend(pid) from pg_stat_activity where application_name = '${applicationOf(run)}'`;
        return (await server().run(databaseUrl, ended)).length === 0;
      });
      await server().run(databaseUrl, `delete from cluster.gateways where run = '${run}'`);
    },
    /** The processes at the server of a run's sessions: the one that writes, and the second one. */
    sessions: async (databaseUrl: string, run: string) => {
      const rows = await server().run(
        databaseUrl,
        `select pid, pid in (select pid from pg_locks where locktype = 'advisory') as "isWriter"
           from pg_stat_activity where application_name = '${applicationOf(run)}'`,
      );
      const pidOf = (isWriter: boolean) => Number(rows.find((it) => it.isWriter === isWriter)?.pid);
      return { writer: pidOf(true), second: pidOf(false), count: rows.length };
    },
  };
}

/** Settles once as many callers have called it as are awaited. Later calls settle at once. */
export function barrier(callers: number): () => Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  let count = 0;
  onTestFinished(() => resolve());
  return () => {
    count += 1;
    if (count >= callers) resolve();
    return promise;
  };
}
