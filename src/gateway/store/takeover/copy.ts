import { Migrator } from 'kysely';
import type { ClientBase } from 'pg';
import { PayboxError } from '../../../lib/errors.ts';
import { queriesOver } from '../engines/postgres-session.ts';
import { MIGRATIONS } from '../schema/migrations.ts';
import type { EarlierShard } from './earlier-shard.ts';
import { copyPayments } from './payments.ts';
import { copySettings } from './settings.ts';

/** Tables whose rows were in the schema of shard 0, for all shards. */
export const OF_REGISTRY: readonly string[] = [
  ...['partners', 'accounts', 'boxes', 'sources', 'audit', 'admin_tokens', 'box_secrets', 'enrolment_requests'],
];
/** Tables of each shard. `seq` is numbered again, in the order of the time in this column. */
const NUMBERED: Readonly<Record<string, string>> = {
  orders: 'created_at_ms',
  pushes: 'created_at_ms',
  callbacks: 'created_at_ms',
  credits: 'received_at_ms',
};
/** Tables of each shard whose rows move as they are. The number of an attempt counts for its callback only. */
const AS_THEY_ARE = [...['callback_attempts', 'notices', 'order_codes', 'payment_requests', 'sales', 'damaged_rows']];

/** Makes the tables, and copies the rows of all shards into them, in the caller's transaction. Returns their numbers. */
export async function copyShards(
  client: ClientBase,
  shards: readonly EarlierShard[],
): Promise<Readonly<Record<string, number>>> {
  await client.query('set local search_path to public');
  const provider = { getMigrations: async () => MIGRATIONS };
  // The migrations run in the transaction of the caller. The schema is named, because the shards have such tables, too.
  const within = { migrationTableSchema: 'public', disableTransactions: true };
  const { error } = await new Migrator({ db: queriesOver(client), provider, ...within }).migrateToLatest();
  if (error !== undefined) throw error;
  const rows: Record<string, number> = {};
  const [registry] = shards;
  for (const table of OF_REGISTRY)
    rows[table] = await copyTable(client, table, registry === undefined ? [] : [registry]);
  for (const table of AS_THEY_ARE) rows[table] = await copyTable(client, table, shards);
  for (const [table, time] of Object.entries(NUMBERED))
    rows[table] = await copyNumbered(client, { table, time, shards });
  rows.payments = await copyPayments(client, shards);
  rows.qr_codes = await copyTable(client, 'qr_codes', shards, 'on conflict do nothing');
  rows.known_logins = await copyKnownLogins(client, shards);
  await copySettings(client, shards);
  await continueSequences(client);
  return rows;
}

/** Lets the sequence of each table go on after the highest number in it. */
async function continueSequences(client: ClientBase): Promise<void> {
  const { rows } = await client.query<{ name: string; table: string }>(
    `select sequencename as name, left(sequencename, -4) as table from pg_sequences
       where schemaname = 'public' and sequencename like '%\\_seq'`,
  );
  for (const { name, table } of rows) {
    await client.query(`select setval('public.${name}', max(seq)) from public.${table} having max(seq) is not null`);
  }
}

/** Returns the columns of an old table. Throws where the new table has no place for one of them. */
async function columnsOf(client: ClientBase, table: string, { schema }: EarlierShard): Promise<string[]> {
  const { rows } = await client.query<{ name: string; has_place: boolean }>(
    `select old.column_name as name, new.column_name is not null as has_place
       from information_schema.columns as old left join information_schema.columns as new
         on new.table_schema = 'public' and new.table_name = old.table_name and new.column_name = old.column_name
       where old.table_schema = $1 and old.table_name = $2 order by old.ordinal_position`,
    [schema, table],
  );
  const lost = rows.filter((it) => !it.has_place).map((it) => it.name);
  if (rows.length > 0 && lost.length === 0) return rows.map(({ name }) => name).filter((it) => it !== 'checksum');
  const what = rows.length === 0 ? `${schema} has no table ${table}` : `${table} has no column ${lost.join(', ')}`;
  throw new PayboxError('STORAGE_FAULT', `${what}: nothing was changed`, {
    severity: 'fatal',
    fix: 'restore a backup',
  });
}

async function copyTable(
  client: ClientBase,
  table: string,
  shards: readonly EarlierShard[],
  ifThere = '',
): Promise<number> {
  let count = 0;
  for (const shard of shards) {
    const columns = (await columnsOf(client, table, shard)).join(', ');
    const copied = await client.query(
      `insert into public.${table} (${columns}) select ${columns} from ${shard.schema}.${table} ${ifThere}`,
    );
    count += copied.rowCount ?? 0;
  }
  return count;
}

/**
 * Copies rows that have numbers. A row counts as made no earlier than the rows of its shard before it, because somebody
 * may have set the calendar clock back. So the rows of each shard keep their order.
 */
async function copyNumbered(
  client: ClientBase,
  { table, time, shards }: { table: string; time: string; shards: readonly EarlierShard[] },
): Promise<number> {
  const [first] = shards;
  if (first === undefined) return 0;
  const columns = (await columnsOf(client, table, first)).filter((it) => it !== 'seq').join(', ');
  const all = shards.map(
    ({ schema, index }) =>
      `select ${columns}, seq, ${index} as shard, max(${time}) over (order by seq) as made_ms from ${schema}.${table}`,
  );
  const copied = await client.query(
    `insert into public.${table} (${columns}, seq)
       select ${columns}, row_number() over (order by made_ms, shard, seq) from (${all.join(' union all ')}) as merged
       order by made_ms, shard, seq`,
  );
  return copied.rowCount ?? 0;
}

/** Copies the known logins of all shards. A login counts as new as in the shard where it is newest, counted from the end. */
async function copyKnownLogins(client: ClientBase, shards: readonly EarlierShard[]): Promise<number> {
  const all = shards.map(
    ({ schema }) => `select digest, row_number() over (order by seq desc) as age from ${schema}.known_logins`,
  );
  const copied = await client.query(
    `insert into public.known_logins (digest, seq)
       select digest, row_number() over (order by min(age) desc, digest) from (${all.join(' union all ')}) as merged
       group by digest`,
  );
  return copied.rowCount ?? 0;
}
