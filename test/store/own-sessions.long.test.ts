import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Store } from '../../src/gateway/store/store.ts';
import { keptLog } from '../support/kept-log.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { startProxy } from '../support/proxy.ts';
import { postgresServer } from '../support/stores.ts';
import { LOCKS, missing, note } from './own-sessions-fixture.ts';
import { opened, order, pay } from './rows.ts';

describe.skipIf(missing)(`a gateway whose own session with PostgreSQL hangs${note}`, () => {
  const server = postgresServer();
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

  it('waits also for a session that hangs while it waits for the lock, and gets it in its place', async () => {
    const { store, proxy, databaseUrl, supersededBy } = await setUp();
    const [first = 0] = await sessions(databaseUrl, true);
    const goOnFirst = stopped(first);
    proxy.cut();
    const [second = 0] = await eventually('the next session to wait', async () => {
      const waiting = await sessions(databaseUrl, false);
      return waiting.length > 0 && waiting;
    });
    const goOnSecond = stopped(second);
    proxy.cut();
    goOnFirst();
    await eventually('the lock of the second, which hangs', async () =>
      (await sessions(databaseUrl, true)).includes(second),
    );
    await expect(store.orders.add(order('lost'))).rejects.toThrow(`its process ${second} at the server`);
    goOnSecond();
    await works(store, 'after');
    expect(supersededBy()).toBeUndefined();
  });

  it('MSG-7 loses no payment and has none twice, whatever that session still commits', async () => {
    const { store, databaseUrl, supersededBy } = await setUp();
    const acknowledged: string[] = [];
    const names = Array.from({ length: 400 }, (_, i) => `p${i}`);
    let goOn: () => void = () => undefined;
    const paying = names.map(async (id, i) => {
      await pay(store, id, { callback: { id: `callback ${id}`, url: 'u', body: 'b' } });
      acknowledged.push(id);
      if (i === 50) {
        const [holder = 0] = await sessions(databaseUrl, true);
        goOn = stopped(holder);
      }
    });
    const settled = await Promise.allSettled(paying);
    expect(settled.some(({ status }) => status === 'rejected')).toBe(true);
    goOn();
    await works(store, 'after');
    expect(supersededBy()).toBeUndefined();
    const stored = (await store.payments.newest(1000)).map(({ id }) => id);
    expect(acknowledged.filter((id) => !stored.includes(id))).toEqual([]);
    expect(new Set(stored).size).toBe(stored.length);
    expect(stored.filter((id) => !names.includes(id))).toEqual([]);
    expect(await store.callbacks.ofPayments(stored)).toHaveLength(stored.length);
    await store.close();
    // The start looks through the whole ledger.
    const again = await opened({ dataDir: await noFolder(), databaseUrl });
    expect((await again.payments.newest(1000)).map(({ id }) => id)).toEqual(stored);
  });
});
