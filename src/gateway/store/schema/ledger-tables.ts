import { type Kysely, sql } from 'kysely';
import { addChecksumFunction, addChecksums, CHECKED_TABLES, PAYMENT_CONTENT_SQL } from '../integrity/checksums.ts';
import { chainHash, LEDGER } from '../integrity/ledger.ts';
import type { Tables } from './tables.ts';

const BATCH_ROWS_MAX = 1000;

/** Chains the payments, and gives every table that carries money checksums. */
export async function addLedger(db: Kysely<Tables>): Promise<void> {
  const { schema } = db;
  await schema.alterTable('payments').addColumn('link', 'text').execute();
  await schema
    .createTable('ledger')
    .addColumn('name', 'text', (it) => it.primaryKey())
    .addColumn('end_seq', 'bigint', (it) => it.notNull())
    .addColumn('end_link', 'text', (it) => it.notNull())
    .addColumn('pruned_seq', 'bigint', (it) => it.notNull())
    .addColumn('pruned_link', 'text', (it) => it.notNull())
    .addColumn('pruned_count', 'bigint', (it) => it.notNull())
    .execute();
  await schema
    .createTable('damaged_rows')
    .addColumn('table_name', 'text', (it) => it.notNull())
    .addColumn('name', 'text')
    .addColumn('content', 'text', (it) => it.notNull())
    .execute();
  await db
    .insertInto('ledger')
    .values(await chained(db))
    .execute();
  await addChecksumFunction(db);
  for (const table of CHECKED_TABLES) await addChecksums(db, table);
}

/** Links the payments that are there, some of which may have been deleted; the ledger of them. */
async function chained(db: Kysely<Tables>) {
  let [end, pruned, count] = [{ seq: 0, link: '' }, { seq: 0, link: '' }, 0];
  for (let more = true; more; ) {
    const rows = await db
      .selectFrom('payments')
      .select(['seq', sql<string>`${sql.raw(PAYMENT_CONTENT_SQL)}`.as('content')])
      .where('seq', '>', end.seq)
      .orderBy('seq')
      .limit(BATCH_ROWS_MAX)
      .execute();
    for (const { seq, content } of rows) {
      if (seq !== end.seq + 1) pruned = { seq: seq - 1, link: end.link };
      end = { seq, link: chainHash(end.link, content) };
      count += 1;
      await db.updateTable('payments').set({ link: end.link }).where('seq', '=', seq).execute();
    }
    more = rows.length === BATCH_ROWS_MAX;
  }
  const ends = { end_seq: end.seq, end_link: end.link, pruned_seq: pruned.seq, pruned_link: pruned.link };
  return { name: LEDGER, ...ends, pruned_count: end.seq - count };
}
