import type { ClientBase } from 'pg';
import { COVERED, joinedSql } from '../integrity/checksums.ts';
import type { LedgerRow } from '../schema/tables.ts';

/** The last migration of the versions that had shards. */
export const LAST_MIGRATION = '020-token-names';

/** The columns that the link of a payment covered in an earlier version. The checksum covers the link, too. */
const LINKED = COVERED.payments.filter((it) => it !== 'link');
/** At most this many problems of a table are named. */
const NAMED_MAX = 10;

/** A shard of an earlier version that was checked. */
export interface EarlierShard {
  index: number;
  schema: string;
}

/** Returns descriptions of the damage and loss in a shard of an earlier version. Reads only. */
export async function problemsOfShard(client: ClientBase, schema: string): Promise<string[]> {
  const problems: string[] = [];
  for (const [table, columns] of Object.entries(COVERED)) {
    const { rows } = await client.query<{ name: string }>(
      `select ${columns[0]} as name from ${schema}.${table}
         where checksum is distinct from ${schema}.paybox_checksum(${joinedSql(columns)}) limit ${NAMED_MAX}`,
    );
    if (rows.length > 0) problems.push(`damaged in ${schema}.${table}: ${rows.map(({ name }) => name).join(', ')}`);
  }
  const { rows } = await client.query<LedgerRow>(`select * from ${schema}.ledger`);
  const [ledger] = rows;
  if (ledger === undefined) return [...problems, `the ledger of ${schema} is gone`];
  const { end_seq, end_link, pruned_seq, pruned_link, pruned_count } = ledger;
  const broken = await client.query<{ seq: number }>(
    `select seq from (
       select seq, link, ${joinedSql(LINKED)} as content, coalesce(lag(seq) over by_seq, $1) as before_seq,
         coalesce(lag(link) over by_seq, $2) as before_link
       from ${schema}.payments where seq > $1 window by_seq as (order by seq)) as chain
     where seq <> before_seq + 1
       or link <> encode(sha256(convert_to(before_link || chr(31) || content, 'UTF8')), 'hex')
     order by seq limit ${NAMED_MAX}`,
    [pruned_seq, pruned_link],
  );
  for (const { seq } of broken.rows) problems.push(`payment ${seq} of ${schema} does not follow the one before it`);
  const ends = await client.query<{ kept: number; seq: number | null; link: string | null }>(
    `select (select count(*) from ${schema}.payments where seq <= $1) as kept,
       (select seq from ${schema}.payments order by seq desc limit 1) as seq,
       (select link from ${schema}.payments order by seq desc limit 1) as link`,
    [pruned_seq],
  );
  const { kept = 0, seq, link } = ends.rows[0] ?? {};
  const missing = pruned_seq - pruned_count - kept;
  if (missing !== 0) problems.push(`${missing} of the payments of ${schema} up to number ${pruned_seq} are missing`);
  const last = seq == null || seq < pruned_seq ? { seq: pruned_seq, link: pruned_link } : { seq, link };
  if (last.seq !== end_seq || last.link !== end_link)
    problems.push(`the ledger of ${schema} ends at payment ${end_seq}, its payments at ${last.seq}`);
  return problems;
}
