import { describe, expect, it } from 'vitest';
import { eventually } from '../support/net.ts';
import { missing, note } from '../support/stores.ts';
import { noFolder, ownSessions, stopped, works } from './own-sessions-fixture.ts';
import { opened, order, pay } from './rows.ts';

describe.skipIf(missing)(`a gateway whose own session with PostgreSQL hangs${note}`, () => {
  const { sessions, setUp } = ownSessions();

  it('a gateway waits also for a session of its own that hangs while it waits for the lock, and gets it in its place', async () => {
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

  it('MSG-7 a gateway whose own session hangs loses no payment and has none twice, whatever that session still commits', async () => {
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
