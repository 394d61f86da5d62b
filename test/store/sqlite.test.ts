import { copyFile, mkdir, open, readdir, rename, rm, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { CompiledQuery, Kysely, sql } from 'kysely';
import { describe, expect, it, onTestFinished } from 'vitest';
import { sqliteFile } from '../../src/gateway/store/engines/sqlite.ts';
import { CallbackStore } from '../../src/gateway/store/repositories/callbacks.ts';
import { ModeHistory } from '../../src/gateway/store/repositories/mode-history.ts';
import { MoneyTransaction } from '../../src/gateway/store/repositories/money-transaction.ts';
import { OrderStore } from '../../src/gateway/store/repositories/orders.ts';
import { Search } from '../../src/gateway/store/repositories/search.ts';
import type { Tables } from '../../src/gateway/store/schema/tables.ts';
import { keptLog } from '../support/kept-log.ts';
import { temporaryFolder } from '../support/net.ts';
import { opened, order, pay, push } from './rows.ts';

const NAME = 'gateway.sqlite';

/** The file of a store, as its engine shows it. */
async function openedFile(dataDir: string, heard?: (query: CompiledQuery) => void): Promise<Kysely<Tables>> {
  await (await opened({ dataDir })).close();
  const { dialect } = sqliteFile(join(dataDir, NAME), keptLog().log);
  const db = new Kysely<Tables>({ dialect, log: (event) => heard?.(event.query) });
  onTestFinished(() => db.destroy());
  return db;
}

describe('a store in a file', () => {
  it('a store opens a folder whose first start broke off in mid-migration', async () => {
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

  it('a store of a newer version is refused by name, and left as it is', async () => {
    const dataDir = await temporaryFolder();
    await (await opened({ dataDir })).close();
    const db = new DatabaseSync(join(dataDir, NAME));
    db.exec("INSERT INTO kysely_migration VALUES ('999-of-tomorrow', '2030-01-01')");
    db.close();
    await expect(opened({ dataDir })).rejects.toMatchObject({
      code: 'CONFIG',
      message: expect.stringContaining('a newer version: it has 999-of-tomorrow'),
      fix: expect.stringContaining('newer version'),
    });
  });

  it('a store refuses a folder of its name', async () => {
    const dataDir = await temporaryFolder();
    await mkdir(join(dataDir, NAME));
    await expect(opened({ dataDir })).rejects.toThrow(/dataDir: the store .*gateway\.sqlite cannot be opened/);
  });

  it('a store names a second gateway as what has it open', async () => {
    const dataDir = await temporaryFolder();
    await opened({ dataDir });
    await expect(opened({ dataDir })).rejects.toMatchObject({
      code: 'CONFIG',
      message: `dataDir: another gateway uses the store ${join(dataDir, NAME)}`,
    });
  });

  it('SYN-4 a store finds what is due to a partner, what it was not told yet and what failed by an index of all that is asked', async () => {
    const queries: CompiledQuery[] = [];
    const db = await openedFile(await temporaryFolder(), (query) => queries.push(query));
    const callbacks = new CallbackStore(db, keptLog().log);
    await callbacks.neverTried('demo', 9);
    await callbacks.nextDue('demo', 9);
    await callbacks.newest(9, undefined, 'failed');
    await callbacks.backlog();
    const plans: string[] = [];
    for (const { sql: text, parameters } of [...queries]) {
      const { rows } = await db.executeQuery(CompiledQuery.raw(`explain query plan ${text}`, [...parameters]));
      plans.push(JSON.stringify(rows));
    }
    expect(plans).toEqual([
      expect.stringContaining('callbacks_never_tried (partner=? AND status=? AND tries=?)'),
      expect.stringContaining('callbacks_by_due (status=? AND partner=?)'),
      expect.stringContaining('callbacks_of_status (status=?)'),
      expect.stringContaining('COVERING INDEX callbacks_by_due (status=?)'),
      expect.stringContaining('callbacks_of_status (status=?)'),
    ]);
    expect(plans.slice(0, 3).join()).not.toContain('TEMP B-TREE');
  });

  it('CHK-3 CBK-8 a store finds orders and payments by number, reference and code by an index', async () => {
    const queries: CompiledQuery[] = [];
    const db = await openedFile(await temporaryFolder(), (query) => queries.push(query));
    const search = new Search(db, keptLog().log, new ModeHistory(db));
    const account = { partner: 'demo', bank_account: '1' };
    await search.byOrderId(account, 'DH001');
    await search.byReference(account, 'R');
    const money = { ...account, content: 'x', amount: 1, trans_type: 'C' } as const;
    await search.contentWithCode(money, 'VQR0123456789');
    const plans: string[] = [];
    for (const { sql: text, parameters } of [...queries]) {
      const { rows } = await db.executeQuery(CompiledQuery.raw(`explain query plan ${text}`, [...parameters]));
      plans.push(JSON.stringify(rows));
    }
    expect(plans.length).toBe(5);
    for (const plan of plans) expect(plan).not.toContain('SCAN');
    expect(plans.join()).toMatch(/orders_by_order_id.*payments_by_reference.*order_codes_1.*orders_of_code/s);
  });

  it('MAT-2 MAT-3 a store finds the order of a credit by an index', async () => {
    const queries: CompiledQuery[] = [];
    const db = await openedFile(await temporaryFolder(), (query) => queries.push(query));
    const finder = new MoneyTransaction(db, new ModeHistory(db), '').ordersOf({ partner: 'demo', bankAccount: '1' });
    await finder.byCodes(['PB2345678', 'VQR0123456789']);
    await finder.byAmount(1, 9);
    const plans: string[] = [];
    for (const { sql: text, parameters } of queries.filter(({ sql: text }) => text.includes('"orders"'))) {
      const { rows } = await db.executeQuery(CompiledQuery.raw(`explain query plan ${text}`, [...parameters]));
      plans.push(JSON.stringify(rows));
    }
    for (const plan of plans) expect(plan).not.toContain('SCAN');
    expect(plans).toEqual([
      expect.stringMatching(/SEARCH order_codes USING.*SEARCH orders USING INDEX sqlite_autoindex_orders_1/),
      expect.stringContaining('orders_of_code (<expr>=?)'),
      expect.stringContaining('orders_of_amount (bank_account=? AND amount=?)'),
    ]);
    expect(plans[2]).not.toContain('TEMP B-TREE');
  });

  it('a store keeps whole or not at all what no longer fits, says why, and goes on when there is room again', async () => {
    const db = await openedFile(await temporaryFolder());
    const orders = new OrderStore(db, keptLog().log);
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

/** A store that was closed, with some pages in its file. */
async function filled(): Promise<{ dataDir: string; file: string }> {
  const dataDir = await temporaryFolder();
  const store = await opened({ dataDir });
  for (let n = 0; n < 100; n += 1) await store.orders.add(order(`o${n}`, { content: 'x'.repeat(1000) }));
  await store.close();
  return { dataDir, file: join(dataDir, NAME) };
}

describe('a store whose file is damaged', () => {
  it.each([
    ['in its head', 0],
    ['in its first page', 100],
    ['in its second page', 4096],
    ['in a table', 20_480],
    ['in a page that a start does not read', 61_440],
    ['by being something else', undefined],
  ])('is refused at the start, by name and with what to do: %s', async (_name, at) => {
    const { dataDir, file } = await filled();
    if (at === undefined) await writeFile(file, 'something else that is long enough to be looked at'.repeat(50));
    else {
      const handle = await open(file, 'r+');
      await handle.write(Buffer.alloc(1000, 0xff), 0, 1000, at);
      await handle.close();
    }
    await expect(opened({ dataDir })).rejects.toMatchObject({
      code: 'CONFIG',
      message: expect.stringContaining(`dataDir: the store ${file} is damaged: `),
      fix: expect.stringMatching(/restore a copy, or move it away/),
    });
    await rename(file, `${file}.damaged`);
    const anew = await opened({ dataDir });
    expect(await anew.orders.newest(1)).toEqual([]);
  });

  it('a damaged store has an index that is not as its table says made anew, and all that it kept', async () => {
    const { dataDir, file } = await filled();
    const before = await opened({ dataDir });
    for (const id of ['a', 'b', 'c']) await pay(before, id);
    await before.close();
    const db = new DatabaseSync(file);
    const { page, size } = db
      .prepare(
        "select rootpage as page, (select page_size from pragma_page_size) as size from sqlite_schema where name = 'payments_by_seq'",
      )
      .get() as { page: number; size: number };
    db.close();
    const handle = await open(file, 'r+');
    const last = Buffer.alloc(1);
    // The first entry of the index lies at the end of its page: its last byte is part of a rowid or of a seq.
    await handle.read(last, 0, 1, page * size - 1);
    await handle.write(Buffer.of((last[0] ?? 0) ^ 0x40), 0, 1, page * size - 1);
    await handle.close();
    const { log, lines } = keptLog();
    const store = await opened({ dataDir }, log);
    expect(lines).toEqual([
      expect.objectContaining({ event: 'store-index-rebuilt', reason: expect.stringContaining('payments_by_seq') }),
    ]);
    expect((await store.payments.newest(10)).map(({ id }) => id)).toEqual(['c', 'b', 'a']);
    await store.close();
    await opened({ dataDir }, log);
    expect(lines).toHaveLength(1);
  });

  it('a damaged store begins anew, and logs it, once it is emptied', async () => {
    const { dataDir, file } = await filled();
    await truncate(file);
    const { log, lines } = keptLog();
    const store = await opened({ dataDir }, log);
    expect(lines).toEqual([expect.objectContaining({ level: 'warn', event: 'store-created', file })]);
    await store.orders.add(order('a'));
  });

  it.each([
    ['emptied', (file: string) => truncate(file)],
    ['deleted', (file: string) => rm(file)],
  ])('is refused once it is %s but for the log of its newest entries, which is kept', async (_name, spoil) => {
    const { dataDir, file } = await filled();
    const wal = `${file}-wal`;
    await writeFile(wal, 'what was written last');
    await spoil(file);
    const before = await readdir(dataDir);
    await expect(opened({ dataDir })).rejects.toMatchObject({ code: 'CONFIG', fix: expect.stringContaining(wal) });
    expect(await readdir(dataDir)).toEqual(before);
  });
});

describe('a store whose file goes away while it is open', () => {
  it.each<[string, (dataDir: string) => Promise<void>]>([
    ['deleted with its folder', (dataDir) => rm(dataDir, { recursive: true })],
    ['deleted', (dataDir) => rm(join(dataDir, NAME))],
    ['emptied', (dataDir) => truncate(join(dataDir, NAME))],
    ['left without its log', (dataDir) => rm(join(dataDir, `${NAME}-wal`))],
    ['replaced by a copy', (dataDir) => replace(join(dataDir, NAME))],
  ])('refuses every write, by name and with what to do, once it is %s', async (_name, spoil) => {
    const dataDir = await temporaryFolder();
    const store = await opened({ dataDir });
    await store.orders.add(order('before'));
    await spoil(dataDir);
    const refusal = { code: 'STORAGE_FAULT', message: expect.stringMatching(/gateway\.sqlite.*: put it back/) };
    for (const write of [
      () => store.orders.add(order('after')),
      () => pay(store, 't', { orderRef: 'before' }),
      () => store.setting('key', () => 'value'),
    ]) {
      await expect(write()).rejects.toMatchObject(refusal);
    }
  });

  it('a store whose file goes away keeps nothing of a write in hand, and goes on when the file is back', async () => {
    const dataDir = await temporaryFolder();
    const away = `${dataDir}-away`;
    const db = await openedFile(dataDir);
    const add = (name: string, meanwhile = async () => {}) =>
      db.transaction().execute(async (trx) => {
        await trx.insertInto('settings').values({ name, value: 'x' }).execute();
        await meanwhile();
      });
    await expect(add('in hand', () => rename(dataDir, away))).rejects.toThrow('put it back');
    await expect(add('later')).rejects.toThrow('put it back');
    await rename(away, dataDir);
    await add('back');
    const added = db.selectFrom('settings').select('name').where('value', '=', 'x');
    expect(await added.execute()).toEqual([{ name: 'back' }]);
  });
});

async function replace(file: string): Promise<void> {
  await copyFile(file, `${file}.copy`);
  await rename(`${file}.copy`, file);
}
