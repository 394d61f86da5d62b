import { ConfigError } from '../../../lib/errors.ts';

/** The schemas of an earlier version, in which a cluster had a store for each of its shards, were named like this. */
export const SHARD_SCHEMA = 'shard_';
/** Earlier versions marked a database by this schema while they restored a backup of a cluster. */
export const HALF_RESTORE_SCHEMA = 'paybox_restore';

/** Finds the shards and the settings of an earlier version, and a restore that it has not finished. */
const EARLIER = `
  select 1 from pg_namespace where nspname in ('${SHARD_SCHEMA}0', '${HALF_RESTORE_SCHEMA}')
  union all select 1 from information_schema.columns
    where table_schema = 'cluster' and table_name = 'settings' and column_name = 'shards'`;

/** Throws ConfigError for a database in which an earlier version had a cluster. `name` is that of the database. */
export async function refuseEarlierCluster(
  query: (text: string) => Promise<{ rows: unknown[] }>,
  name: string,
): Promise<void> {
  const { rows } = await query(EARLIER);
  if (rows.length === 0) return;
  throw new ConfigError(
    `databaseUrl: ${name} has the shards of an earlier version`,
    'end all gateways of that version, then run paybox takeover --config with this file once',
  );
}
