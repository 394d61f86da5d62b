import { join } from 'node:path';
import pg from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Store } from '../../src/gateway/store/store.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { postgresServer } from '../support/stores.ts';
import { missing, note, SECOND, WRITER } from './group-commit-fixture.ts';
import { opened, order } from './rows.ts';

describe.skipIf(missing)(`a commit in PostgreSQL that waits for the disk outside its connection${note}`, () => {
  // The server itself would soon write to the disk what nobody waits for.
  const server = postgresServer(['wal_writer_delay=10s']);
  const place = async () => ({
    dataDir: join(await temporaryFolder(), 'none'),
    databaseUrl: await server().database(),
  });
  const ids = async (store: Store) => (await store.orders.newest(100)).map((it) => it.id).toSorted();
  const pidOf = async (url: string, which: string) => {
    const rows = await server().run(url, which);
    expect(rows).toHaveLength(1);
    return Number(rows[0]?.pid);
  };
  const end = async (url: string, which: string) => {
    await server().run(url, `select pg_terminate_backend(${await pidOf(url, which)})`);
  };
  /** Others see these orders: they are committed. */
  const committed = (url: string, count: number) =>
    eventually(`${count} committed orders`, async () => {
      const rows = await server().run(url, 'select count(*)::int as count from orders');
      return rows[0]?.count === count;
    });
  /** Stops the second connection's server process. */
  const stopSecond = async (url: string) => {
    const pid = await pidOf(url, SECOND);
    const signal = (name: NodeJS.Signals) => {
      try {
        process.kill(pid, name);
      } catch {
        // It has ended.
      }
    };
    signal('SIGSTOP');
    onTestFinished(() => signal('SIGCONT'));
    return signal;
  };
  it('waits on the other connection when the second one is ended, and is told', async () => {
    const given = await place();
    const store = await opened(given);
    const holder = new pg.Client(given.databaseUrl);
    onTestFinished(() => holder.end());
    await holder.connect();
    await holder.query("begin; select from settings where name = 'holder' for update");
    let isTold = false;
    const written = store.orders.add(order('a')).then(() => {
      isTold = true;
    });
    await committed(given.databaseUrl, 1);
    await end(given.databaseUrl, SECOND);
    await eventually('the writer to wait', async () => {
      const waiting = `select pid from pg_stat_activity where wait_event_type = 'Lock' and pid in (${WRITER})`;
      return (await server().run(given.databaseUrl, waiting)).length === 1;
    });
    expect(isTold).toBe(false);
    await holder.query('rollback');
    await written;
    await store.orders.add(order('b'));
    await eventually(
      'a second connection again',
      async () => (await server().run(given.databaseUrl, SECOND)).length === 1,
    );
  });

  it('fails in bounded time when the second connection hangs, and the next one goes another way', async () => {
    const given = await place();
    const store = await opened(given);
    await stopSecond(given.databaseUrl);
    await expect(store.orders.add(order('a'))).rejects.toThrow('timeout');
    await store.orders.add(order('b'));
    expect(await ids(store)).toEqual(['a', 'b']);
  });
});
