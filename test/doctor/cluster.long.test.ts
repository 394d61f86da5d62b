import { expect, it } from 'vitest';
import { gatewayFindings } from '../../src/device/doctor/gateway.ts';
import { ADMIN_TOKEN, startMembers, type TestMember } from '../cluster/members.ts';
import { eventually, freePort } from '../support/net.ts';
import { missing, note, postgresServer } from '../support/stores.ts';

const server = missing ? undefined : postgresServer(['fsync=on', 'full_page_writes=on']);

it.skipIf(missing)(`tells what a member sees of its cluster, and who has another file${note}`, async () => {
  const databaseUrl = (await server?.().database()) ?? '';
  const cluster = await startMembers({ databaseUrl, members: 2, shards: 4 });
  const [member] = cluster.members as [TestMember];
  const { hostname: host, port } = new URL(member.origin);
  const file = { mode: 'sandbox', dataDir: member.dataDir, databaseUrl, adminToken: ADMIN_TOKEN } as const;
  const found = async () => {
    const all = await gatewayFindings({ ...file, cluster: {}, http: { host, port: Number(port) }, sources: [] });
    return all.find(({ check }) => check === 'cluster');
  };
  expect(await found()).toMatchObject({ result: 'ok', found: '2 members, 4 of 4 shards have a holder' });

  const away = await gatewayFindings({ ...file, cluster: {}, http: { host, port: await freePort() }, sources: [] });
  expect(away.filter(({ result }) => result === 'failed').map(({ check }) => check)).toEqual(['gateway']);
  expect(away).toContainEqual(expect.objectContaining({ check: 'cluster', result: 'skipped' }));

  const other = await cluster.start({ confirmTimeoutMs: 4_000 });
  await cluster.whole([...cluster.members, other]);
  const text = `3 members, 4 of 4 shards have a holder; other files at ${other.origin}`;
  expect(await found()).toMatchObject({ result: 'warning', found: text, fix: expect.stringContaining('same file') });

  await other.close();
  await cluster.start({ cluster: { advertise: member.origin, shards: 4 } });
  await eventually('the rival', async () => (await found())?.found.includes('has the same address'));
  expect(await found()).toMatchObject({ result: 'failed' });
});
