import { describe, expect, it } from 'vitest';
import type { Store } from '../../src/gateway/store/store.ts';
import { eventually } from '../support/net.ts';
import { missing, note } from '../support/stores.ts';
import { noFolder, ownSessions, stopped, works } from './own-sessions-fixture.ts';
import { opened, order } from './rows.ts';

describe.skipIf(missing)(`a gateway whose own session with PostgreSQL hangs${note}`, () => {
  const ids = async (store: Store) => (await store.orders.newest(1000)).map((it) => it.id).toSorted();
  const { sessions, setUp } = ownSessions();

  it('STO-2 a gateway waits for its own session that hangs, says which, and goes on by itself once it has ended', async () => {
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
    await eventually('the log to say so', () => lines.some(({ event }) => event === 'database-recovered'));
    const told = lines.filter(({ event }) => event === 'database-unreachable');
    expect(told).toEqual([expect.objectContaining({ reason: expect.stringMatching(/not ended yet|ECONNRESET/) })]);
  });

  it('STO-1 STO-2 a gateway whose own session hangs leaves the database to another gateway that gets the lock before it', async () => {
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
