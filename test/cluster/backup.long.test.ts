import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { backup, restore } from '../../src/commands/actions/backup.ts';
import { ClusterRestore } from '../../src/gateway/store/engines/cluster-restore.ts';
import { type RealBox, startRealBox } from '../security/real-box.ts';
import { eventually, freePort, temporaryFolder } from '../support/net.ts';
import { missing, note, postgresServer } from '../support/stores.ts';
import { generate, type Members, type Row, startMembers, type TestMember } from './members.ts';

const SHARDS = 4;

/** Sells to a box and pays; returns the id of the payment. */
async function sell(member: TestMember, box: RealBox): Promise<void> {
  const { terminalCode } = box.identity;
  const sold = await member.admin('/admin/v1/sales', 'POST', { amount: 10_000, terminalCode });
  expect([sold.status, sold.body]).toEqual([201, expect.objectContaining({ status: expect.any(String) })]);
  const { id } = sold.body as { id: string };
  const before = announced(box).length;
  const paid = await member.admin(`/_mock/orders/${id}/pay`, 'POST');
  expect(paid.status).toBe(200);
  await eventually('the announcement', () => announced(box).length > before);
}

const announced = (box: RealBox) =>
  box.log.filter((it) => it.event === 'payment-reported').map((it) => it.transactionId);

async function payments(member: TestMember): Promise<Row[]> {
  return (await member.admin('/_mock/payments')).body as Row[];
}

async function fileFor(value: Record<string, unknown>): Promise<string> {
  const file = join(await temporaryFolder(), 'gateway.yaml');
  await writeFile(file, JSON.stringify(value));
  return file;
}

const unreported = (rows: readonly Row[]) =>
  rows.flatMap((it) => it.boxes as Row[]).filter((it) => it.reportedAt === null);

describe.skipIf(missing)(`a backup of a cluster${note}`, () => {
  const server = postgresServer();

  async function open(accounts = 8): Promise<{ cluster: Members; config: Record<string, unknown> }> {
    const databaseUrl = await server().database();
    const cluster = await startMembers({ databaseUrl, members: 2, shards: SHARDS, accounts });
    return { cluster, config: await cluster.fileOf({ databaseUrl }) };
  }

  it('BAK-5 a backup of a cluster holds all shards at one moment; after its restore no payment up to it is lost or announced twice', async () => {
    const { cluster, config } = await open();
    const [first] = cluster.members as [TestMember, TestMember];
    const link = { transport: 'http', url: first.origin };
    const boxes = await Promise.all(cluster.boxes.map((it) => startRealBox(it, link)));
    for (const box of boxes) await sell(first, box);
    await eventually('all reports', async () => unreported(await payments(first)).length === 0);
    const file = join(await temporaryFolder(), 'backup');
    await backup(file, { gateway: '', config: await fileFor(config) });
    const before = await payments(first);
    expect(before).toHaveLength(boxes.length);
    // Beyond the backup: its store never heard of these.
    for (const box of boxes.slice(0, 3)) await sell(first, box);
    const heard = boxes.map((box) => announced(box));

    const restored = String(config.databaseUrl);
    const { port } = new URL(first.origin);
    const advertise = { cluster: { advertise: first.origin, shards: SHARDS } };
    const next = await fileFor({ ...config, ...advertise, databaseUrl: restored });
    await expect(restore(file, { config: next })).rejects.toThrow(`a member answers at ${first.origin}`);
    for (const member of cluster.members) await member.close();
    await expect(restore(file, { config: next })).rejects.toThrow(/is not empty/);
    // The database of the same name, whose newest payments the folders of its members remember.
    const elsewhere = await server().database();
    const name = new URL(restored).pathname.slice(1);
    await server().run(elsewhere, `drop database ${name}`);
    await server().run(elsewhere, `create database ${name}`);
    await restore(file, { config: next });
    const again = await cluster.start({
      databaseUrl: restored,
      dataDir: first.dataDir,
      http: { port: Number(port) },
      ...advertise,
    });
    await cluster.whole([again]);
    expect(await payments(again)).toEqual(
      expect.arrayContaining(before.map((it) => expect.objectContaining({ transactionId: it.transactionId }))),
    );
    expect(await payments(again)).toHaveLength(before.length);
    await eventually('all boxes', async () => {
      const listed = (await again.admin('/_mock/boxes')).body as Row[];
      return listed.length === boxes.length && listed.every((it) => it.online === true);
    });
    for (const box of boxes) await sell(again, box);
    for (const [i, box] of boxes.entries()) {
      const all = announced(box);
      expect(new Set(all).size).toBe(all.length);
      expect(all.slice(0, -1)).toEqual(heard[i]);
    }
  }, 120_000);

  it('BAK-5 a restore that was stopped is finished by the same backup, and no member starts until then', async () => {
    const { cluster, config } = await open(2);
    const file = join(await temporaryFolder(), 'backup');
    await backup(file, { gateway: '', config: await fileFor(config) });
    const other = join(await temporaryFolder(), 'other');
    expect(await generate(cluster.members[0] as TestMember, cluster.accounts[0]?.bankAccount ?? '')).toBe(200);
    await backup(other, { gateway: '', config: await fileFor(config) });
    for (const member of cluster.members) await member.close();
    const digest = createHash('sha256')
      .update(await readFile(file))
      .digest('hex');

    for (const isFilled of [false, true]) {
      const restored = await server().database();
      const next = await fileFor({ ...config, databaseUrl: restored });
      const stopped = await ClusterRestore.begin(restored, digest);
      expect(stopped.isFilled).toBe(false);
      if (isFilled)
        await server().run(
          restored,
          `create schema cluster; create table cluster.settings as select 1 as one, ${SHARDS} as shards, 'secret'::text as secret, ''::text as generation; create table cluster.members (); create table cluster.holders ()`,
        );
      // While it goes on, another one is refused.
      await expect(restore(file, { config: next })).rejects.toThrow(/is being restored/);
      await stopped.close();
      await expect(cluster.start({ databaseUrl: restored })).rejects.toThrow(/was stopped midway/);
      await expect(restore(other, { config: next })).rejects.toThrow(/a restore of another backup/);
      await restore(file, { config: next });
      const rows = await server().run(restored, 'select generation from cluster.settings');
      expect(rows[0]?.generation).toMatch(/^[0-9a-f-]{36}$/);
      if (!isFilled) await cluster.whole([await cluster.start({ databaseUrl: restored })]);
    }
  });

  it('BAK-5 a restore is refused where a member lives, where the backup is of another kind, and where no cluster is configured', async () => {
    const { cluster, config } = await open(2);
    const file = join(await temporaryFolder(), 'backup');
    await backup(file, { gateway: '', config: await fileFor(config) });
    const { cluster: _, ...alone } = config;
    const single = await fileFor({ ...alone, databaseUrl: await server().database() });
    await expect(restore(file, { config: single })).rejects.toThrow(`${file} is of a cluster`);
    // A member of a database that somebody has emptied is a member all the same.
    const port = await freePort();
    const emptied = await cluster.fileOf({ databaseUrl: config.databaseUrl, http: { port } });
    await expect(restore(file, { config: await fileFor(emptied) })).rejects.toThrow(/a gateway uses the database/);
  });
});
