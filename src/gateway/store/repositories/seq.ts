import { type RawBuilder, sql } from 'kysely';

/** The `seq` of a new row: one above every row of its table, because the store has one writer. */
export function nextSeq(table: 'orders' | 'pushes' | 'callbacks'): RawBuilder<number> {
  return sql<number>`(select coalesce(max(seq), 0) + 1 from ${sql.table(table)})`;
}

/** The `seq` of the row with this id; null without one, and no row is before or after null. */
export function seqOf(table: 'orders' | 'payments' | 'callbacks', id: string): RawBuilder<number> {
  return sql<number>`(select seq from ${sql.table(table)} where id = ${id})`;
}
