import { expect, it } from 'vitest';
import { gatewayFindings } from '../../src/device/doctor/gateway.ts';
import { ADMIN_TOKEN, startGateways, type TestGateway } from '../cluster/gateways.ts';
import { freePort } from '../support/net.ts';
import { missing, note, postgresServer } from '../support/stores.ts';

const server = missing ? undefined : postgresServer(['fsync=on', 'full_page_writes=on']);

it.skipIf(missing)(`says which gateways share a database, and which has another file${note}`, async () => {
  const databaseUrl = (await server?.().database()) ?? '';
  const cluster = await startGateways({ databaseUrl, gateways: 2 });
  const [gateway] = cluster.gateways as [TestGateway];
  const { hostname: host, port } = new URL(gateway.origin);
  const file = { mode: 'sandbox', dataDir: gateway.dataDir, databaseUrl, adminToken: ADMIN_TOKEN } as const;
  const found = async () => {
    const all = await gatewayFindings({ ...file, cluster: {}, http: { host, port: Number(port) }, sources: [] });
    return all.find(({ check }) => check === 'cluster');
  };
  expect(await found()).toMatchObject({ result: 'ok', found: expect.stringContaining('2 gateways') });

  const away = await gatewayFindings({ ...file, cluster: {}, http: { host, port: await freePort() }, sources: [] });
  expect(away.filter(({ result }) => result === 'failed').map(({ check }) => check)).toEqual(['gateway']);
  expect(away).toContainEqual(expect.objectContaining({ check: 'cluster', result: 'skipped' }));

  const other = await cluster.start({ qrLifetimeSeconds: 120 });
  await cluster.whole([...cluster.gateways, other]);
  expect(await found()).toMatchObject({
    result: 'warning',
    found: expect.stringMatching(new RegExp(`3 gateways.*${other.name} \\(qrLifetimeSeconds\\)`)),
    fix: expect.stringContaining('same file'),
  });
});
