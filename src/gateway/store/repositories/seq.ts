import { type Kysely, type RawBuilder, sql } from 'kysely';
import { isPostgres } from '../integrity/checksums.ts';
import type { Tables } from '../schema/tables.ts';

/** The tables whose rows the store numbers in the order of their age. In PostgreSQL each has a sequence `{table}_seq`. */
export const NUMBERED = ['orders', 'pushes', 'payments', 'callbacks', 'credits', 'audit', 'known_logins'] as const;
export type NumberedTable = (typeof NUMBERED)[number];

/**
 * Returns the `seq` of a new row, which is higher than that of any row in its table. In PostgreSQL several gateways may
 * insert at once, so it comes from a sequence, and numbers of transactions that failed are left out.
 */
export function nextSeq(db: Kysely<Tables>, table: NumberedTable): RawBuilder<number> {
  if (isPostgres(db)) return sql<number>`nextval(${sql.lit(sequenceOf(table))})`;
  // The ledger has the number of the payment already.
  return table === 'payments' ? highestSeq(table) : sql<number>`${highestSeq(table)} + 1`;
}

/** Returns the highest `seq` that a row of this table has or had. */
export function lastSeq(db: Kysely<Tables>, table: NumberedTable): RawBuilder<number> {
  return isPostgres(db) ? sql<number>`(select last_value from ${sql.table(sequenceOf(table))})` : highestSeq(table);
}

/** Creates the sequences of PostgreSQL, which continue after the numbers in the store. */
export async function addSequences(db: Kysely<Tables>): Promise<void> {
  if (!isPostgres(db)) return;
  for (const table of NUMBERED) {
    const sequence = sequenceOf(table);
    await sql`create sequence ${sql.table(sequence)} minvalue 0`.execute(db);
    const stored = sql`(select coalesce(max(seq), 0) from ${sql.table(table)})`;
    await sql`select setval(${sql.lit(sequence)}, greatest(${highestSeq(table)}, ${stored}))`.execute(db);
  }
}

/** Returns the `seq` of the row with this id. Null if there is none: then no row compares as older or newer. */
export function seqOf(table: 'orders' | 'payments' | 'callbacks' | 'credits', id: string): RawBuilder<number> {
  return sql<number>`(select seq from ${sql.table(table)} where id = ${id})`;
}

/** Returns the highest number in a store with one writer. The newest payments may be pruned, so the ledger has theirs. */
function highestSeq(table: NumberedTable): RawBuilder<number> {
  return table === 'payments'
    ? sql<number>`(select coalesce(max(end_seq), 0) from ledger)`
    : sql<number>`(select coalesce(max(seq), 0) from ${sql.table(table)})`;
}

function sequenceOf(table: NumberedTable): string {
  return `${table}_seq`;
}
