import { copyFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { systemRandom } from '../../src/lib/random.ts';
import { newSecret } from '../../src/protocol/secret.ts';
import { temporaryFolder } from '../support/net.ts';
import { missing, note, postgresServer } from '../support/stores.ts';
import { startGateways, type TestGateway } from './gateways.ts';

describe.skipIf(missing)(`a gateway that is not like the others of its database${note}`, () => {
  const server = postgresServer();
  const open = async (config: Record<string, unknown> = {}) => {
    const cluster = await startGateways({ databaseUrl: await server().database(), gateways: 1, config });
    const [gateway] = cluster.gateways as [TestGateway];
    return { cluster, gateway };
  };
  const folderWithKey = async () => {
    const folder = await temporaryFolder();
    await writeFile(join(folder, 'registry.key'), `${systemRandom.secret(32)}\n`, { mode: 0o600 });
    return folder;
  };

  it.each([
    ['another basePath', async () => ({ basePath: '/bank' }), /^basePath: expected \/vqr, as the gateway gw-1 has it/],
    [
      'another mode',
      async () => ({ sandbox: false, mode: 'live', publicUrl: 'https://pay.example' }),
      /^mode: expected sandbox/,
    ],
    ['a registry.key', async () => ({ dataDir: await folderWithKey() }), /^registry.key in dataDir: expected none/],
  ])('SHA-4 does not join with %s, and leaves nothing behind', async (_what, change, reason) => {
    const { cluster, gateway } = await open();
    await expect(cluster.start(await change())).rejects.toThrow(reason);
    await cluster.whole([gateway]);
    expect((await cluster.rows.runs()).map(({ name }) => name)).toEqual([gateway.name]);
    expect((await gateway.admin('/healthz')).status).toBe(200);
  });

  it('SHA-4 two gateways of one name do not run at once: the second is refused by name, and the first goes on', async () => {
    const { cluster, gateway } = await open();
    const [before] = await cluster.rows.runs();
    await expect(cluster.start({ cluster: { name: gateway.name } })).rejects.toThrow(
      `cluster.name: a gateway of the name ${gateway.name} runs at`,
    );
    expect(await cluster.rows.runs()).toMatchObject([{ run: before?.run, gone: false }]);
    await gateway.close();
    const next = await cluster.start({ cluster: { name: gateway.name } });
    await cluster.whole([next]);
  });

  it('a gateway joins once its registry.key is the same; and no first gateway starts with another one', async () => {
    const dataDir = await folderWithKey();
    const { cluster, gateway } = await open({ dataDir });
    const box = { terminalCode: 'VVB777777', serialNumber: 'VVB888888', secret: newSecret(systemRandom) };
    expect((await gateway.admin('/admin/v1/boxes', 'POST', box)).status).toBe(201);
    const same = await temporaryFolder();
    await copyFile(join(dataDir, 'registry.key'), join(same, 'registry.key'));
    const second = await cluster.start({ dataDir: same });
    await cluster.whole([gateway, second]);
    await Promise.all([gateway.close(), second.close()]);
    for (const wrong of [await folderWithKey(), await temporaryFolder()]) {
      await expect(cluster.start({ dataDir: wrong })).rejects.toThrow(/registry.key is (missing|another key)/);
    }
  });

  it('a database of a cluster of an earlier version is refused by name, and stays as it is', async () => {
    const { cluster, gateway } = await open();
    await gateway.close();
    const databaseUrl = await server().database();
    await server().run(databaseUrl, 'create schema shard_0; create table shard_0.orders (id text)');
    await expect(cluster.start({ databaseUrl })).rejects.toThrow(/has the shards of an earlier version/);
    const schemas = await server().run(databaseUrl, `select nspname from pg_namespace where nspname = 'cluster'`);
    expect(schemas).toEqual([]);
  });
});
