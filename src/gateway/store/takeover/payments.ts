import type { ClientBase } from 'pg';
import { ConfigError } from '../../../lib/errors.ts';
import type { EarlierShard } from './earlier-shard.ts';
import { type KindChange, kindsOf, PAYMENT_KINDS } from './settings.ts';

const COLUMNS =
  'id, partner, order_ref, order_id, reference_number, bank_account, bank_code, amount, content, trans_type, paid_at_ms';
/** A history of kinds has at most this many changes. */
const CHANGES_MAX = 1_000;

/** Returns the name under which the payments of a shard stay chained. */
const writerOf = ({ index }: EarlierShard) => `shard-${index}`;

/**
 * Copies the payments of all shards, numbered in the order of their time. The payments of each shard keep their chain,
 * with its numbers and links, as that of a writer. Returns how many they are.
 */
export async function copyPayments(client: ClientBase, shards: readonly EarlierShard[]): Promise<number> {
  const kinds: (readonly KindChange[] | undefined)[] = [];
  for (const { schema } of shards) kinds.push(await kindsOf(client, schema));
  const now = new Set(kinds.flatMap((it) => it?.at(-1)?.kind ?? []));
  if (now.size > 1) {
    const what = 'some shards take real money and others only tests';
    throw new ConfigError(what, 'start the earlier version once with its mode until it runs all shards');
  }
  const all = shards.map(
    (shard, i) => `select ${COLUMNS}, '${writerOf(shard)}' as writer, seq as number, link,
      ${kindSql(kinds[i] ?? [])} as kind, max(paid_at_ms) over (order by seq) as made_ms from ${shard.schema}.payments`,
  );
  await client.query(`create temporary table merged on commit drop as
    select ${COLUMNS}, writer, number, link, kind, row_number() over (order by made_ms, writer, number) as seq
      from (${all.join(' union all ')}) as rows`);
  const copied = await client.query(
    `insert into public.payments (${COLUMNS}, writer, number, link, seq)
       select ${COLUMNS}, writer, number, link, seq from merged order by seq`,
  );
  for (const shard of shards) {
    await client.query(
      `insert into public.ledger (name, end_seq, end_link, pruned_seq, pruned_link, pruned_count)
         select $1, end_seq, end_link, pruned_seq, pruned_link, pruned_count from ${shard.schema}.ledger`,
      [writerOf(shard)],
    );
  }
  const [kind] = now;
  if (kind !== undefined) await keepKinds(client, kind);
  return copied.rowCount ?? 0;
}

/** Returns an expression for the kind of a payment of a shard, by its old number. */
function kindSql(changes: readonly KindChange[]): string {
  const cases = changes.toReversed().map(({ kind, afterSeq }) => `when seq > ${afterSeq} then '${kind}'`);
  return cases.length === 0 ? `'test'` : `case ${cases.join(' ')} else 'test' end`;
}

/** Stores which payments were tests, by their new numbers. `now` is the kind of the payments from now on. */
async function keepKinds(client: ClientBase, now: KindChange['kind']): Promise<void> {
  const { rows } = await client.query<KindChange>(
    `select kind, seq - 1 as "afterSeq" from (select kind, seq, lag(kind) over (order by seq) as before from merged) as it
       where kind is distinct from before order by seq`,
  );
  const [end] = (await client.query<{ seq: number }>('select coalesce(max(seq), 0) as seq from merged')).rows;
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
