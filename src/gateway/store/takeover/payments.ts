import type { ClientBase } from 'pg';
import { ConfigError } from '../../../lib/errors.ts';
import { PAYMENT_CONTENT_SQL } from '../integrity/checksums.ts';
import type { EarlierShard } from './earlier-shard.ts';
import { kindsOf, PAYMENT_KINDS } from './settings.ts';

const COLUMNS =
  'id, partner, order_ref, order_id, reference_number, bank_account, bank_code, amount, content, trans_type, paid_at_ms';
/** A history of kinds has at most this many changes. */
const CHANGES_MAX = 1_000;

/**
 * Copies the payments of all shards, numbered in the order of their time. One new chain has all of them, because a link covers
 * the number of its payment. The chains of the shards were checked before.
 */
export async function copyPayments(client: ClientBase, shards: readonly EarlierShard[]): Promise<number> {
  const kinds = await Promise.all(shards.map(({ schema }) => kindsOf(client, schema)));
  const now = new Set(kinds.flatMap((it) => it?.at(-1)?.kind ?? []));
  if (now.size > 1) {
    const what = 'some shards take real money and others only tests';
    throw new ConfigError(what, 'start the earlier version once with its mode until it runs all shards');
  }
  const all = shards.map(
    ({ schema, index }, i) => `select ${COLUMNS}, seq as old_seq, ${index} as shard, ${kindSql(kinds[i] ?? [])} as kind,
      max(paid_at_ms) over (order by seq) as made_ms from ${schema}.payments`,
  );
  await client.query(`create temporary table merged on commit drop as
    select ${COLUMNS}, shard, kind, row_number() over (order by made_ms, shard, old_seq) as number
      from (${all.join(' union all ')}) as rows`);
  await client.query('create unique index on merged (number); analyze merged');
  // Each link covers the one before it, so they are made one after the other.
  const copied = await client.query(
    `with recursive chain (place, end_link) as (
       select 0::bigint, ''
       union all
       select number, encode(sha256(convert_to(end_link || chr(31) || ${PAYMENT_CONTENT_SQL}, 'UTF8')), 'hex')
         from chain join merged on number = place + 1)
     insert into public.payments (${COLUMNS}, seq, number, link)
       select ${COLUMNS}, number, number, end_link from merged join chain on place = number order by number`,
  );
  await client.query(
    `update public.ledger set (end_seq, end_link) = (select number, link from public.payments order by number desc limit 1)
       where exists (select 1 from public.payments)`,
  );
  const [kind] = now;
  if (kind !== undefined) await keepKinds(client, kind);
  return copied.rowCount ?? 0;
}

/** Returns an expression for the kind of a payment of a shard, by its old number. */
function kindSql(changes: readonly { kind: string; afterSeq: number }[]): string {
  const cases = changes.toReversed().map(({ kind, afterSeq }) => `when seq > ${afterSeq} then '${kind}'`);
  return cases.length === 0 ? `'test'` : `case ${cases.join(' ')} else 'test' end`;
}

/** Stores which payments were tests, by their new numbers. `now` is the kind of the payments from now on. */
async function keepKinds(client: ClientBase, now: string): Promise<void> {
  const { rows } = await client.query<{ kind: string; afterSeq: number }>(
    `select kind, number - 1 as "afterSeq"
       from (select kind, number, lag(kind) over (order by number) as before from merged) as it
       where kind is distinct from before order by number`,
  );
  const [end] = (await client.query<{ seq: number }>('select coalesce(max(number), 0) as seq from merged')).rows;
  if (rows.at(-1)?.kind !== now) rows.push({ kind: now, afterSeq: end?.seq ?? 0 });
  if (rows.length > CHANGES_MAX) {
    const what = `tests and real money change more than ${CHANGES_MAX} times in the payments of all shards`;
    throw new ConfigError(what, 'let the earlier version prune old payments first');
  }
  await client.query('insert into public.settings (name, value) values ($1, $2)', [
    PAYMENT_KINDS,
    JSON.stringify(rows),
  ]);
}
