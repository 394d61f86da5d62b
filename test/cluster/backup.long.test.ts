import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { backup, restore } from '../../src/commands/actions/backup.ts';
import { type RealBox, startRealBox } from '../security/real-box.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { missing, note, postgresServer } from '../support/stores.ts';
import { type Gateways, type Row, startGateways, type TestGateway } from './gateways.ts';

/** Sells to a box and pays; returns the id of the payment. */
async function sell(gateway: TestGateway, box: RealBox): Promise<void> {
  const { terminalCode } = box.identity;
  const sold = await gateway.admin('/admin/v1/sales', 'POST', { amount: 10_000, terminalCode });
  expect([sold.status, sold.body]).toEqual([201, expect.objectContaining({ status: expect.any(String) })]);
  const { id } = sold.body as { id: string };
  const before = announced(box).length;
  const paid = await gateway.admin(`/_mock/orders/${id}/pay`, 'POST');
  expect(paid.status).toBe(200);
  await eventually('the announcement', () => announced(box).length > before);
}

const announced = (box: RealBox) =>
  box.log.filter((it) => it.event === 'payment-reported').map((it) => it.transactionId);

async function payments(gateway: TestGateway): Promise<Row[]> {
  return (await gateway.admin('/_mock/payments')).body as Row[];
}

async function fileFor(value: Record<string, unknown>): Promise<string> {
  const file = join(await temporaryFolder(), 'gateway.yaml');
  await writeFile(file, JSON.stringify(value));
  return file;
}

const unreported = (rows: readonly Row[]) =>
  rows.flatMap((it) => it.boxes as Row[]).filter((it) => it.reportedAt === null);

describe.skipIf(missing)(`a backup of gateways of one database${note}`, () => {
  const server = postgresServer();

  async function open(accounts = 8): Promise<{ cluster: Gateways; config: Record<string, unknown> }> {
    const databaseUrl = await server().database();
    const cluster = await startGateways({ databaseUrl, gateways: 2, accounts });
    return { cluster, config: await cluster.fileOf({ databaseUrl }) };
  }

  it('BAK-5 a backup of gateways of one database holds all of one moment; after its restore no payment up to it is lost or announced twice', async () => {
    const { cluster, config } = await open();
    const [first] = cluster.gateways as [TestGateway, TestGateway];
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
    const next = await fileFor(config);
    await expect(restore(file, { config: next })).rejects.toThrow(/a gateway uses the database|is not empty/);
    for (const gateway of cluster.gateways) await gateway.close();
    await expect(restore(file, { config: next })).rejects.toThrow(/is not empty/);
    // The database of the same name, whose newest payments the folders of its gateways remember.
    const elsewhere = await server().database();
    const name = new URL(restored).pathname.slice(1);
    await server().run(elsewhere, `drop database ${name}`);
    await server().run(elsewhere, `create database ${name}`);
    await restore(file, { config: next });
    const { port } = new URL(first.origin);
    // Its folder remembers payments from after the backup. That the database was restored is written in it.
    const again = await cluster.start({
      ...{ dataDir: first.dataDir, http: { port: Number(port) }, cluster: { name: first.name } },
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

  it('BAK-5 a restore is refused where a gateway lives, and where the backup is of another kind', async () => {
    const { cluster, config } = await open(2);
    const file = join(await temporaryFolder(), 'backup');
    await backup(file, { gateway: '', config: await fileFor(config) });
    const used = restore(file, { config: await fileFor(await cluster.fileOf()) });
    await expect(used).rejects.toThrow(/a gateway uses the database|is not empty/);
    await expect(restore(file, { data: await temporaryFolder() })).rejects.toThrow(`${file} is of PostgreSQL`);
  });
});
