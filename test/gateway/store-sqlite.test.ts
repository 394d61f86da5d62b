import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Kysely, sql } from 'kysely';
import { describe, expect, it, onTestFinished } from 'vitest';
import { OrderStore } from '../../src/gateway/store/orders.ts';
import type { Tables } from '../../src/gateway/store/schema.ts';
import { sqliteDialect } from '../../src/gateway/store/sqlite.ts';
import { temporaryFolder } from '../support/net.ts';
import { opened, order, push } from './store-rows.ts';

/** The file of a store, as its engine shows it. */
async function openedFile(dataDir: string): Promise<Kysely<Tables>> {
  await (await opened({ dataDir })).close();
  const db = new Kysely<Tables>({ dialect: sqliteDialect(join(dataDir, 'gateway.sqlite')) });
  onTestFinished(() => db.destroy());
  return db;
}

describe('a store in a file', () => {
  it('opens a folder whose first start broke off in mid-migration', async () => {
    const dataDir = await temporaryFolder();
    const file = join(dataDir, 'gateway.sqlite');
    const before = new DatabaseSync(file);
    // The last table of the migration is in the way: it breaks off there with all the others made.
    before.exec('CREATE TABLE notices (x)');
    before.close();
    await expect(opened({ dataDir })).rejects.toThrow('notices');
    const after = new DatabaseSync(file);
    after.exec('DROP TABLE notices');
    after.close();
    const store = await opened({ dataDir });
    await store.orders.add(order('a'));
    expect(await store.orders.newest(10)).toHaveLength(1);
  });

  it.each([
    ['no database', (file: string) => writeFile(file, 'something else that is long enough to be looked at'.repeat(50))],
    ['a folder', (file: string) => mkdir(file)],
  ])('refuses one that is %s, by name', async (_name, spoil) => {
    const dataDir = await temporaryFolder();
    await spoil(join(dataDir, 'gateway.sqlite'));
    await expect(opened({ dataDir })).rejects.toThrow(/dataDir: the store .*gateway\.sqlite cannot be opened/);
  });

  it('is on the disk at each commit, not only at some', async () => {
    const db = await openedFile(await temporaryFolder());
    const { rows } = await sql<{ synchronous: number }>`pragma synchronous`.execute(db);
    expect(rows).toEqual([{ synchronous: 2 }]);
  });

  it('keeps whole or not at all what no longer fits, says why, and goes on when there is room again', async () => {
    const db = await openedFile(await temporaryFolder());
    const orders = new OrderStore(db);
    const { rows } = await sql<{ page_count: number }>`pragma page_count`.execute(db);
    const pages = rows[0]?.page_count ?? 0;
    await sql`pragma max_page_count = ${sql.lit(pages + 3)}`.execute(db);
    const qr_code = 'x'.repeat(8000);
    const add = async (from: number) => {
      for (let i = from; i < from + 20; i += 1) {
        await orders.startPush(push(`p${i}`, `o${i}`), order(`o${i}`, { qr_code }));
      }
    };
    await expect(add(0)).rejects.toThrow('full');
    await expect(add(100)).rejects.toThrow('full');
    const ids = (await orders.newest(100)).map((it) => it.id);
    expect((await orders.pushesOf(ids)).map((it) => it.order_ref).toSorted()).toEqual(ids.toSorted());
    await sql`pragma max_page_count = 1000000`.execute(db);
    await add(200);
    expect(await orders.newest(100)).toHaveLength(ids.length + 20);
  });
});
