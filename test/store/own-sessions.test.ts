import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Store } from '../../src/gateway/store/store.ts';
import { keptLog } from '../support/kept-log.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { startProxy } from '../support/proxy.ts';
import { postgresServer } from '../support/stores.ts';
import { LOCKS, missing, note } from './own-sessions-fixture.ts';
import { opened, order } from './rows.ts';

describe.skipIf(missing)(`a gateway whose own session with PostgreSQL hangs${note}`, () => {
  const server = postgresServer();
  const ids = async (store: Store) => (await store.orders.newest(1000)).map((it) => it.id).toSorted();
  /** Processes at the server that have the lock, or wait for it. */
  const sessions = async (url: string, granted: boolean) =>
    (await server().run(url, `select pid ${LOCKS} and granted = ${granted}`)).map(({ pid }) => Number(pid));
  const signal = (pid: number, name: NodeJS.Signals) => {
    try {
      process.kill(pid, name);
    } catch {
      // It has ended.
    }
  };
  /** Stops a process of the server; it goes on when told, or when the test ends. */
  const stopped = (pid: number) => {
    signal(pid, 'SIGSTOP');
    const goOn = () => signal(pid, 'SIGCONT');
    onTestFinished(goOn);
    return goOn;
  };
  const noFolder = async () => join(await temporaryFolder(), 'none');
  /** A store whose connections can be cut, so that nothing waits for the 6 s of a lost answer. */
  const setUp = async () => {
    const proxy = await startProxy({ port: server().port });
    onTestFinished(() => proxy.close());
    const databaseUrl = await server().database();
    const near = Object.assign(new URL(databaseUrl), { port: String(proxy.port) }).href;
    const { log, lines } = keptLog();
    const store = await opened({ dataDir: await noFolder(), databaseUrl: near }, log);
    await store.orders.add(order('before'));
    let supersededBy: unknown;
    void store.superseded?.then((error) => {
      supersededBy = error;
    });
    return { store, proxy, databaseUrl, lines, supersededBy: () => supersededBy };
  };
  const works = (store: Store, id: string) =>
    eventually(`order ${id}`, () =>
      store.orders.add(order(id)).then(
        () => true,
        () => false,
      ),
    );

  it('STO-2 waits for that session, says which, and goes on by itself once it has ended', async () => {
    const { store, proxy, databaseUrl, lines, supersededBy } = await setUp();
    const [holder = 0] = await sessions(databaseUrl, true);
    const goOn = stopped(holder);
    proxy.cut();
    const message = `an earlier database session of this gateway has not ended yet: its process ${holder} at the server`;
    const refused = await eventually('the refusal to name the process', async () => {
      const error = await store.orders.add(order('lost')).catch((it: unknown) => it);
      return String(error).includes(message) && error;
    });
    expect(refused).toMatchObject({ code: 'STORAGE_FAULT', severity: 'retryable' });
    expect(supersededBy()).toBeUndefined();
    goOn();
    await works(store, 'after');
    expect(await ids(store)).toEqual(['after', 'before']);
    expect(await sessions(databaseUrl, true)).toHaveLength(1);
    await eventually('the log to say so', () => lines.some(({ event }) => event === 'database-regained'));
    const told = lines.filter(({ event }) => event === 'database-unreachable');
    expect(told).toEqual([expect.objectContaining({ reason: expect.stringMatching(/not ended yet|ECONNRESET/) })]);
  });

  it('STO-1 STO-2 leaves the database to another gateway that gets the lock before it', async () => {
    const { store, proxy, databaseUrl } = await setUp();
    const [holder = 0] = await sessions(databaseUrl, true);
    const goOn = stopped(holder);
    const next = opened({ dataDir: await noFolder(), databaseUrl, standby: true });
    await eventually('the other to wait', async () => (await sessions(databaseUrl, false)).length > 0);
    proxy.stall();
    proxy.cut();
    goOn();
    const other = await next;
    await other.orders.add(order('other'));
    proxy.resume();
    expect(String(await store.superseded)).toContain('another gateway has taken over');
    await expect(store.orders.add(order('late'))).rejects.toThrow('has taken over');
    expect(await ids(other)).toEqual(['before', 'other']);
  });
});
