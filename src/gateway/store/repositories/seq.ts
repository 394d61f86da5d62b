import { type RawBuilder, sql } from 'kysely';

/** The `seq` of a row to be inserted: above that of every row in its table, as the store has one writer. */
export function nextSeq(table: 'orders' | 'pushes' | 'callbacks'): RawBuilder<number> {
  return sql<number>`(select coalesce(max(seq), 0) + 1 from ${sql.table(table)})`;
}

/** The `seq` of the row with this id; null without one, before and after which nothing is. */
export function seqOf(table: 'orders' | 'payments' | 'callbacks', id: string): RawBuilder<number> {
  return sql<number>`(select seq from ${sql.table(table)} where id = ${id})`;
}

/** The `seq` of an attempt to be inserted: above that of every attempt of its callback. */
export function nextAttemptSeq(callbackId: string): RawBuilder<number> {
  return sql<number>`(select coalesce(max(seq), 0) + 1 from callback_attempts where callback_id = ${callbackId})`;
}

/** The `seq` in `callback_attempts` after which there are the newest `count` of a row's callback. */
export function newestAttempts(count: number): RawBuilder<number> {
  return sql<number>`(select max(it.seq) from callback_attempts it where it.callback_id = callback_attempts.callback_id) - ${sql.lit(count)}`;
}
