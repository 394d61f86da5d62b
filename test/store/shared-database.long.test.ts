import { describe, expect, it, onTestFinished } from 'vitest';
import { openStore, type Store } from '../../src/gateway/store/store.ts';
import { keptLog, quietLog } from '../support/kept-log.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { startProxy } from '../support/proxy.ts';
import { missing, note } from '../support/stores.ts';
import { noFolder, stopped, works } from './own-sessions-fixture.ts';
import { opened, order } from './rows.ts';
import { sharedStores } from './shared-database-fixture.ts';

describe.skipIf(missing)(`a gateway alone and gateways of a cluster at one PostgreSQL database${note}`, () => {
  const { server, place, database, open, sessions } = sharedStores();
  const end = (databaseUrl: string, pid: number) => server().run(databaseUrl, `select pg_terminate_backend(${pid})`);

  it('STO-1 a gateway alone is refused where gateways of a cluster are, and they where one is alone, each by name', async () => {
    const [shared, owned] = [await database(), await database()];
    await open(shared);
    const alone = await opened({ dataDir: await noFolder(), databaseUrl: owned });
    const refused = await Promise.all([
      openStore({ dataDir: await noFolder(), databaseUrl: shared }, quietLog()).catch(String),
      openStore(await place(owned, 'late'), quietLog()).catch(String),
    ]);
    expect(refused).toEqual([
      expect.stringMatching(/databaseUrl: gateways of a cluster use \S+$/),
      expect.stringMatching(/databaseUrl: another gateway uses \S+, which is in no cluster$/),
    ]);
    await alone.orders.add(order('on'));
  });

  it('STO-1 a gateway that waits alone keeps no gateway of a cluster from its lock, takes over once they have left, and they end', async () => {
    const databaseUrl = await database();
    const [a, b] = (await open(databaseUrl)) as [Store, Store];
    const { log, lines } = keptLog();
    const next = openStore({ dataDir: await temporaryFolder(), databaseUrl, standby: true }, log);
    onTestFinished(async () => (await next).close());
    await eventually('the other to wait', () => lines.some((it) => it.event === 'store-lock-awaited'));
    await end(databaseUrl, (await sessions(databaseUrl, 'a')).writer);
    await works(a, 'regained');
    await b.close();
    const { writer } = await sessions(databaseUrl, 'a');
    const goOn = stopped(writer);
    void a.orders.add(order('frozen')).catch(() => undefined);
    await end(databaseUrl, writer);
    await a.close();
    goOn();
    const alone = await next;
    await alone.orders.add(order('alone'));
    expect(await server().run(databaseUrl, 'select 1 from cluster.gateways')).toEqual([]);
    await expect(openStore({ ...(await place(databaseUrl, 'c')), standby: false }, quietLog())).rejects.toThrow(
      'is in no cluster',
    );
  });

  it('STO-2 a gateway of a cluster waits for its own session that hangs, and goes on once it has ended', async () => {
    const databaseUrl = await database();
    const proxy = await startProxy({ port: server().port });
    onTestFinished(() => proxy.close());
    const near = Object.assign(new URL(databaseUrl), { port: String(proxy.port) }).href;
    const store = await opened({ ...(await place(databaseUrl, 'a')), databaseUrl: near });
    await store.orders.add(order('before'));
    let supersededBy: unknown;
    void store.superseded?.then((error) => {
      supersededBy = error;
    });
    const { writer } = await sessions(databaseUrl, 'a');
    const goOn = stopped(writer);
    proxy.cut();
    const message = `an earlier database session of this gateway has not ended yet: its process ${writer} at the server`;
    await eventually('the refusal to name the process', async () => {
      const error = await store.orders.add(order('lost')).catch((it: unknown) => it);
      return String(error).includes(message);
    });
    goOn();
    await works(store, 'after');
    expect(supersededBy).toBeUndefined();
    expect((await store.orders.newest(10)).map(({ id }) => id)).toEqual(['after', 'before']);
  });
});
