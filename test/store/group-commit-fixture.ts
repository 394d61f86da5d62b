import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import type { Store } from '../../src/gateway/store/store.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { signalTo } from '../support/processes.ts';
import { postgresServer } from '../support/stores.ts';

export const WRITER = `select pid from pg_locks where locktype = 'advisory' and granted
  and database = (select oid from pg_database where datname = current_database())`;
export const SECOND = `select pid from pg_stat_activity where datname = current_database() and application_name = 'paybox-gateway'
  and pid not in (select pid from pg_locks where locktype = 'advisory')`;

export const ids = async (store: Store) => (await store.orders.newest(100)).map((it) => it.id).toSorted();

/** A server of this `describe`, and what is done at it. */
export function groupCommits() {
  // The server itself would soon write to the disk what nobody waits for.
  const server = postgresServer(['wal_writer_delay=10s']);
  const pidOf = async (url: string, which: string) => {
    const rows = await server().run(url, which);
    expect(rows).toHaveLength(1);
    return Number(rows[0]?.pid);
  };
  return {
    server,
    pidOf,
    place: async () => ({
      dataDir: join(await temporaryFolder(), 'none'),
      databaseUrl: await server().database(),
    }),
    end: async (url: string, which: string) => {
      await server().run(url, `select pg_terminate_backend(${await pidOf(url, which)})`);
    },
    /** Others see these orders: they are committed. */
    committed: (url: string, count: number) =>
      eventually(`${count} committed orders`, async () => {
        const rows = await server().run(url, 'select count(*)::int as count from orders');
        return rows[0]?.count === count;
      }),
    /** Stops the second connection's server process. */
    stopSecond: async (url: string) => {
      const pid = await pidOf(url, SECOND);
      const signal = (name: NodeJS.Signals) => signalTo(pid, name);
      signal('SIGSTOP');
      onTestFinished(() => signal('SIGCONT'));
      return signal;
    },
  };
}
