import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Store } from '../../src/gateway/store/store.ts';
import { ConfigError, MissingPeerError } from '../../src/lib/errors.ts';
import { freePort, temporaryFolder } from '../support/net.ts';
import { startProxy } from '../support/proxy.ts';
import { missing, note, postgresServer } from '../support/stores.ts';
import { at } from './postgres-fixture.ts';
import { opened, order } from './rows.ts';

describe.skipIf(missing)(`a store in PostgreSQL${note}`, () => {
  const server = postgresServer();
  const place = async () => ({
    dataDir: join(await temporaryFolder(), 'none'),
    databaseUrl: await server().database(),
  });
  const ids = async (store: Store) => (await store.orders.newest(1000)).map((it) => it.id).toSorted();

  it('gives up a server that says nothing more, and takes the lock back from the connection that is lost', async () => {
    const { databaseUrl, dataDir } = await place();
    const proxy = await startProxy({ port: server().port });
    onTestFinished(() => proxy.close());
    const store = await opened({ databaseUrl: at(databaseUrl, proxy.port), dataDir });
    await store.orders.add(order('before'));
    proxy.abandon();
    await expect(store.orders.add(order('lost'))).rejects.toThrow('timeout');
    await store.orders.add(order('after'));
    expect(await ids(store)).toEqual(['after', 'before']);
    proxy.cut();
    await store.orders.add(order('again')).catch(() => undefined);
    await store.orders.add(order('and again'));
  });

  it('names a server that is not there, that says nothing, or that refuses, and never the password', async () => {
    const { databaseUrl, dataDir } = await place();
    const silent = createServer(() => undefined);
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void silent.close());
    const address = silent.address();
    const silentPort = typeof address === 'object' && address !== null ? address.port : 0;
    const closedPort = await freePort();
    for (const [url, kind, what, fix] of [
      [at(databaseUrl, closedPort), MissingPeerError, `127.0.0.1:${closedPort}/test_`, 'start PostgreSQL'],
      [at(databaseUrl, silentPort), MissingPeerError, `127.0.0.1:${silentPort}/test_`, 'start PostgreSQL'],
      [
        databaseUrl.replace('postgres-secret', 'hunter22'),
        ConfigError,
        'password authentication failed',
        'password in databaseUrl',
      ],
      [databaseUrl.replace(':postgres-secret', ''), ConfigError, 'password', 'password in databaseUrl'],
      [`${databaseUrl}?sslmode=verify-full`, ConfigError, 'does not support SSL', 'take sslmode out'],
      [`${databaseUrl}_not_there`, ConfigError, 'does not exist', 'make this database'],
    ] as const) {
      const error = await opened({ databaseUrl: url, dataDir }).catch((it: unknown) => it);
      expect(error).toBeInstanceOf(kind);
      expect(String(error)).toContain(what);
      expect(error).toMatchObject({ fix: expect.stringContaining(fix) });
      expect(JSON.stringify([String(error), error])).not.toMatch(/postgres-secret|hunter22/);
    }
  });
});
