import type { ClientBase } from 'pg';
import { PayboxError } from '../../../lib/errors.ts';
import { queriesOver } from '../engines/postgres-session.ts';
import { verifyLedger } from '../integrity/ledger.ts';
import { OF_REGISTRY } from './copy.ts';
import type { EarlierShard } from './earlier-shard.ts';

/** Digests that must be the same before and after, whatever the order of the rows is. */
const SUMS: readonly (readonly [table: string, sum: string])[] = [
  ['payments', `coalesce(sum(amount), 0) || ' ' || coalesce(sum(hashtextextended(id || amount, 0)), 0)`],
  ['orders', `coalesce(sum(amount), 0) || ' ' || coalesce(sum(hashtextextended(id || status, 0)), 0)`],
  [
    'credits',
    `coalesce(sum(amount), 0) || ' ' || coalesce(sum(hashtextextended(id || coalesce(payment_id, ''), 0)), 0)`,
  ],
  ['callbacks', `coalesce(sum(tries), 0) || ' ' || coalesce(sum(hashtextextended(id || status || body, 0)), 0)`],
  ['notices', `count(reported_at_ms) || ' ' || coalesce(sum(hashtextextended(payment_id || terminal_code, 0)), 0)`],
];
/** Rows of these tables may be alike in several shards. */
const MERGED: ReadonlySet<string> = new Set(['qr_codes', 'known_logins']);

/**
 * Checks the copied rows before they are committed: every checksum, the chain of payments, the number of rows of each
 * table, and sums over the rows that carry money. Throws PayboxError when one is not what the shards have.
 */
export async function verifyCopy(
  client: ClientBase,
  shards: readonly EarlierShard[],
  rows: Readonly<Record<string, number>>,
): Promise<void> {
  const problems = [...(await verifyLedger(queriesOver(client))).problems];
  const both = async (table: string, what: string, from: readonly EarlierShard[]) => {
    const all = from.map(({ schema }) => `select * from ${schema}.${table}`).join(' union all ');
    const { rows: found } = await client.query<{ before: string; after: string }>(
      `select (select (${what})::text from (${all}) as it) as before, (select (${what})::text from public.${table}) as after`,
    );
    const { before, after } = found[0] ?? {};
    if (before !== after) problems.push(`${table} had ${before} and has ${after}`);
  };
  for (const table of Object.keys(rows).filter((it) => !MERGED.has(it))) {
    await both(table, 'count(*)', OF_REGISTRY.includes(table) ? shards.slice(0, 1) : shards);
  }
  await both('qr_codes', 'count(distinct ref)', shards);
  await both('known_logins', 'count(distinct digest)', shards);
  for (const [table, sum] of SUMS) await both(table, sum, shards);
  if (problems.length === 0) return;
  const what = `the copy is not what the shards have: ${problems.join('; ')}`;
  throw new PayboxError('STORAGE_FAULT', what, { severity: 'fatal', fix: 'nothing was changed; report this' });
}
