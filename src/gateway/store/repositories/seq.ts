import { type RawBuilder, sql } from 'kysely';

/** Returns the `seq` of a new row: the highest of its table plus one. The store has only one writer. */
export function nextSeq(table: 'orders' | 'pushes' | 'callbacks' | 'credits' | 'audit'): RawBuilder<number> {
  return sql<number>`(select coalesce(max(seq), 0) + 1 from ${sql.table(table)})`;
}

/** Returns the `seq` of the row with this id. Null if there is none: then no row compares as older or newer. */
export function seqOf(table: 'orders' | 'payments' | 'callbacks' | 'credits', id: string): RawBuilder<number> {
  return sql<number>`(select seq from ${sql.table(table)} where id = ${id})`;
}
