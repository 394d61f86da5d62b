import { hash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Kysely, Migrator, sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { sqliteFile } from '../../src/gateway/store/engines/sqlite.ts';
import { verifyLedger } from '../../src/gateway/store/integrity/ledger.ts';
import { MIGRATIONS } from '../../src/gateway/store/schema/migrations.ts';
import type { Tables } from '../../src/gateway/store/schema/tables.ts';
import type { StorePlace } from '../../src/gateway/store/store.ts';
import { quietLog } from '../support/kept-log.ts';
import { ENGINES } from '../support/stores.ts';
import { openDatabase } from './one-writer.ts';
import { opened, order, pay } from './rows.ts';

/** The last migration of the version that had one chain, and the number of its newest payment where a test begins. */
const FORMER = '020-token-names';
const PAYMENTS = 5;
const SEPARATOR = '\u001f';

/** What the former version chained of each payment, in its order; `order_ref` was null here. */
const contentOf = (seq: number) =>
  [`p${seq}`, seq, 'demo', '\u0001', `o${seq}`, 'r', '1', 'MB', 50_000 + seq, 'x', 'C', 7].join(SEPARATOR);
const linkAfter = (before: string, seq: number) => hash('sha256', `${before}${SEPARATOR}${contentOf(seq)}`);

function databaseOf({ dataDir, databaseUrl }: StorePlace): Kysely<Tables> {
  if (databaseUrl !== undefined) return openDatabase(databaseUrl);
  return new Kysely<Tables>({ dialect: sqliteFile(join(dataDir, 'gateway.sqlite'), quietLog()).dialect });
}

/** Runs work in the database while no store has it open. */
async function within<T>(place: StorePlace, work: (db: Kysely<Tables>) => Promise<T>): Promise<T> {
  const db = databaseOf(place);
  try {
    return await work(db);
  } finally {
    if (place.databaseUrl === undefined) await db.destroy();
  }
}

/** Makes a store as the former version left it: five payments with their callbacks, of which two were pruned since. */
async function formerStore(place: StorePlace): Promise<void> {
  await within(place, async (db) => {
    const migrations = Object.fromEntries(Object.entries(MIGRATIONS).filter(([name]) => name <= FORMER));
    const { error } = await new Migrator({ db, provider: { getMigrations: async () => migrations } }).migrateToLatest();
    if (error !== undefined) throw error;
    const links = [''];
    for (let seq = 1; seq <= PAYMENTS; seq += 1) {
      const link = linkAfter(links.at(-1) ?? '', seq);
      links.push(link);
      if (seq <= 2) continue;
      await sql`insert into payments
        (id, seq, partner, order_id, reference_number, bank_account, bank_code, amount, content, trans_type, paid_at_ms, link)
        values (${`p${seq}`}, ${seq}, 'demo', ${`o${seq}`}, 'r', '1', 'MB', ${50_000 + seq}, 'x', 'C', 7, ${link})`.execute(
        db,
      );
      await sql`insert into callbacks (id, seq, payment_id, partner, url, body, status, tries, next_at_ms, created_at_ms)
        values (${`c${seq}`}, ${seq}, ${`p${seq}`}, 'demo', 'u', 'b', 'pending', 0, 7, 7)`.execute(db);
    }
    await sql`update ledger set end_seq = ${PAYMENTS}, end_link = ${links[PAYMENTS]}, pruned_seq = 2,
      pruned_link = ${links[2]}, pruned_count = 2`.execute(db);
  });
}

/** Changes a row as a disk does it: past the trigger, which would refuse or sum it. */
async function spoil(place: StorePlace, table: string, change: string): Promise<void> {
  await within(place, async (db) => {
    if (place.databaseUrl !== undefined) {
      await sql.raw(`alter table ${table} disable trigger user`).execute(db);
      await sql.raw(`update ${table} set ${change}`).execute(db);
      await sql.raw(`alter table ${table} enable trigger user`).execute(db);
      return;
    }
    const { rows } = await sql<{
      sql: string;
    }>`select sql from sqlite_schema where name = ${`${table}_updated`}`.execute(db);
    await sql.raw(`drop trigger ${table}_updated`).execute(db);
    await sql.raw(`update ${table} set ${change}`).execute(db);
    await sql.raw(rows[0]?.sql ?? '').execute(db);
  });
}

const checksums = (place: StorePlace) =>
  within(
    place,
    async (db) => (await sql<object>`select id, checksum, link from payments order by id`.execute(db)).rows,
  );

describe.each(ENGINES)('a $name store of the version with one chain', ({ missing, places }) => {
  if (missing) return it.skip('is opened');
  const place = places();

  it('STO-3 goes on with the chain and the rows that it has', async () => {
    const at = await place();
    await formerStore(at);
    const before = await checksums(at);
    await (await opened(at)).close();
    expect(await checksums(at)).toEqual(before);
    const store = await opened(at);
    const numbers = (await store.payments.newest(10)).map(({ writer, number, seq }) => [writer, number, seq]);
    expect(numbers).toEqual([5, 4, 3].map((number) => ['', number, number]));
    await pay(store, 'p6', { callback: { id: 'c6', url: 'u', body: 'b' } });
    await store.orders.add(order('a'));
    const [newest] = await store.payments.newest(1);
    expect(newest).toMatchObject({ id: 'p6', writer: '', number: 6, seq: 6 });
    const [callback] = await store.callbacks.newest(1);
    expect(callback).toMatchObject({ id: 'c6', seq: 6 });
    await store.close();
    await within(at, async (db) => {
      expect((await verifyLedger(db)).problems).toEqual([]);
      const chain = db.selectFrom('ledger').select(['name', 'end_seq', 'pruned_count']);
      expect(await chain.execute()).toEqual([{ name: '', end_seq: 6, pruned_count: 2 }]);
    });
    await (await opened(at)).close();
  });

  it('STO-3 is refused by the names of its damaged rows, and opens once an admin accepts the loss', async () => {
    const at = await place();
    await formerStore(at);
    // Its number is now that of another one.
    await spoil(at, 'payments', "seq = 4 where id = 'p5'");
    await spoil(at, 'ledger', 'end_seq = 7');
    const file = at.databaseUrl === undefined ? 'gateway' : `gateway-${new URL(at.databaseUrl).pathname.slice(1)}`;
    await expect(opened(at)).rejects.toThrow(/damaged in payments: p5; damaged in ledger: payments;/);
    await writeFile(join(at.dataDir, `${file}.accept-loss`), '');
    const store = await opened(at);
    expect((await store.payments.newest(10)).map(({ id }) => id)).toEqual(['p4', 'p3']);
    await pay(store, 'p again');
    await store.close();
    await within(at, async (db) => {
      expect((await verifyLedger(db)).problems).toEqual([]);
      const rows = await sql<{ name: string }>`select name from damaged_rows order by name`.execute(db);
      expect(rows.rows.map(({ name }) => name)).toEqual(['p5', 'payments']);
    });
  });

  it('SYN-1 has one callback for a payment, whoever stores another', async () => {
    const at = await place();
    await formerStore(at);
    await (await opened(at)).close();
    const again = within(at, (db) =>
      sql`insert into callbacks (id, seq, payment_id, partner, url, body, status, tries, next_at_ms, created_at_ms)
        values ('other', 9, 'p5', 'demo', 'u', 'b', 'pending', 0, 7, 7)`.execute(db),
    );
    await expect(again).rejects.toThrow(/unique/i);
  });
});
