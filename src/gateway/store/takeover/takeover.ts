import pg, { type ClientBase } from 'pg';
import { systemClock } from '../../../lib/clock.ts';
import { ConfigError, MissingPeerError, PayboxError, reasonOf, systemCodeOf } from '../../../lib/errors.ts';
import { HALF_RESTORE_SCHEMA, SHARD_SCHEMA } from '../engines/earlier-cluster.ts';
import { LOCK_KEY, nameOf } from '../engines/postgres-session.ts';
import { besideStore, readHighWaterMark } from '../integrity/high-water-mark.ts';
import { MIGRATIONS } from '../schema/migrations.ts';
import { copyShards } from './copy.ts';
import { type EarlierShard, LAST_MIGRATION, problemsOfShard } from './earlier-shard.ts';
import { ACCEPTED_LOSSES } from './settings.ts';
import { verifyCopy } from './verify.ts';

/** The names of the database sessions of gateways, of this version and of earlier ones. */
const GATEWAY_SESSIONS = 'paybox%';
/** The sessions of a gateway that was just stopped may end late. */
const USED_LOOK_MS = 100;
const USED_LOOKS_MAX = 30;
/** The old schemas are kept under this prefix. */
const KEPT_PREFIX = 'before_takeover_';
const INT8 = 20;

export interface TakeoverOptions {
  /** True to check all of it, and to change nothing. */
  check?: boolean;
  /** True to delete the old schemas. They are renamed otherwise. */
  drop?: boolean;
}

export interface TakenOver {
  shards: number;
  /** The number of rows of each table. */
  rows: Readonly<Record<string, number>>;
}

interface Connected {
  client: ClientBase;
  /** The name of the database. */
  name: string;
  location: TakeoverPlace;
}

/** The database, and the folder with the marks of a gateway that ran shards. */
type TakeoverPlace = { dataDir: string; databaseUrl: string };

/**
 * Moves the rows of all shards of an earlier version into one set of tables, in one transaction. Checks the shards
 * before it and the result after it. Throws ConfigError when the database is in use, is damaged, or is not such a
 * database. Throws MissingPeerError when the server does not answer. Nothing has changed then, nor when it is killed.
 */
export async function takeOver(location: TakeoverPlace, options: TakeoverOptions = {}): Promise<TakenOver> {
  const { databaseUrl } = location;
  const name = nameOf(databaseUrl);
  const client = new pg.Client({
    connectionString: databaseUrl,
    application_name: 'paybox-takeover',
    keepAlive: true,
    types: {
      getTypeParser: (oid: number, format?: 'text' | 'binary') =>
        oid === INT8 ? Number : pg.types.getTypeParser(oid, format),
    },
  });
  client.on('error', () => undefined);
  try {
    await client.connect();
    await client.query('begin; set local synchronous_commit = on; set local lock_timeout = 5000');
    const taken = await takeOverWithin({ client, name, location }, options);
    await client.query(options.check === true ? 'rollback' : 'commit');
    return taken;
  } catch (error) {
    throw problemOf(name, error);
  } finally {
    await client.end().catch(() => undefined);
  }
}

async function takeOverWithin(at: Connected, options: TakeoverOptions): Promise<TakenOver> {
  const { client } = at;
  const count = await refuseOther(at);
  await refuseUsed(at, count);
  const shards = await checkShards(at, count);
  await client.query(`alter schema cluster rename to ${KEPT_PREFIX}cluster; create schema cluster`);
  // The secret opens the secrets of the registry, so it goes on.
  await client.query(`create table cluster.settings (one int primary key check (one = 1), secret text not null,
    generation text not null default '')`);
  await client.query(`insert into cluster.settings select one, secret, generation from ${KEPT_PREFIX}cluster.settings`);
  const rows = await copyShards(client, shards);
  await verifyCopy(client, shards, rows);
  for (const schema of ['cluster', ...shards.map((it) => it.schema)]) {
    if (schema !== 'cluster') await client.query(`alter schema ${schema} rename to ${KEPT_PREFIX}${schema}`);
    if (options.drop === true) await client.query(`drop schema ${KEPT_PREFIX}${schema} cascade`);
  }
  return { shards: count, rows };
}

/** Returns the number of shards. Throws ConfigError for a database that is in another state than an earlier cluster. */
async function refuseOther({ client, name }: Connected): Promise<number> {
  const { rows } = await client.query<{ nspname: string }>('select nspname from pg_namespace');
  const schemas = new Set(rows.map(({ nspname }) => nspname));
  if (schemas.has(HALF_RESTORE_SCHEMA)) {
    const what = `${name}: a restore of an earlier version was stopped midway, or goes on`;
    throw new ConfigError(what, 'finish it with that version, or restore into an empty database');
  }
  if (schemas.has(`${KEPT_PREFIX}cluster`)) {
    const what = `${name} was taken over before: it has the schema ${KEPT_PREFIX}cluster`;
    throw new ConfigError(what, 'start the gateways; delete the schemas of before once you do not need them');
  }
  const found = await client.query<{ made: boolean }>(
    `select count(*) = 2 as made from information_schema.columns
       where table_schema = 'cluster' and table_name = 'settings' and column_name in ('shards', 'secret')`,
  );
  if (found.rows[0]?.made !== true) {
    throw new ConfigError(`${name} has no shards of an earlier version`, 'correct databaseUrl, or start the gateway');
  }
  const store = await client.query(
    "select 1 from pg_tables where schemaname = 'public' and tablename in ('kysely_migration', 'payments')",
  );
  if (store.rows.length > 0) {
    const what = `${name} has a store in the schema public beside the shards`;
    throw new ConfigError(what, 'move that store to a database of its own');
  }
  const made = await client.query<{ shards: number }>('select shards from cluster.settings');
  const count = made.rows[0]?.shards ?? 0;
  const all = Array.from({ length: count }, (_, i) => `${SHARD_SCHEMA}${i}`);
  const missing = all.filter((schema) => !schemas.has(schema));
  if (count > 0 && missing.length === 0) return count;
  const what = `${name} was made for ${count} shards, and lacks ${missing.join(', ')}`;
  throw new ConfigError(what, 'start the earlier version once until it runs all shards, or restore a backup');
}

/** Takes the locks of gateways and shards, and throws ConfigError when somebody holds one or is connected. */
async function refuseUsed({ client, name }: Connected, shards: number): Promise<void> {
  const keys = [LOCK_KEY, ...Array.from({ length: shards }, (_, i) => (LOCK_KEY << 16n) + BigInt(i))];
  for (let look = 1; ; look += 1) {
    const locked = await client.query<{ free: boolean }>(
      'select bool_and(pg_try_advisory_xact_lock(key)) as free from unnest($1::bigint[]) as key',
      [keys.map(String)],
    );
    const connected = await client.query(
      `select 1 from pg_stat_activity where datname = current_database() and application_name like $1
         and pid <> pg_backend_pid() limit 1`,
      [GATEWAY_SESSIONS],
    );
    if (locked.rows[0]?.free === true && connected.rows.length === 0) return;
    if (look === USED_LOOKS_MAX) break;
    await systemClock.sleep(USED_LOOK_MS);
  }
  throw new ConfigError(`a gateway uses the database ${name}`, 'end all gateways of it first, then try again');
}

async function checkShards(at: Connected, count: number): Promise<EarlierShard[]> {
  const { client, name } = at;
  const shards: EarlierShard[] = [];
  const problems: string[] = [];
  for (let index = 0; index < count; index += 1) {
    const schema = `${SHARD_SCHEMA}${index}`;
    const applied = await client.query<{ name: string }>(`select name from ${schema}.kysely_migration`);
    const names = new Set(applied.rows.map((it) => it.name));
    if (!names.has(LAST_MIGRATION)) {
      const fix = 'start the last version with shards once until it runs all shards';
      throw new ConfigError(`${name}: ${schema} is of an older version, without ${LAST_MIGRATION}`, fix);
    }
    const unknown = [...names].find((it) => !Object.hasOwn(MIGRATIONS, it));
    if (unknown !== undefined) {
      throw new ConfigError(`${name}: ${schema} is of a newer version: it has ${unknown}`, 'use that version');
    }
    problems.push(...(await problemsOfShard(client, schema)), ...(await missedIn(at, { index, schema })));
    shards.push({ index, schema });
  }
  if (problems.length === 0) return shards;
  const fix = 'restore a backup, or let the earlier version accept the loss; nothing was changed';
  throw new ConfigError(`${name} is damaged or incomplete: ${problems.join('; ')}`, fix);
}

/** Returns which payment a gateway has acknowledged by its mark in dataDir, if this shard lacks it. */
async function missedIn({ client, location }: Connected, { index, schema }: EarlierShard): Promise<string[]> {
  const { rows } = await client.query<{ generation: string }>('select generation from cluster.settings');
  const generation = rows[0]?.generation ? `-${rows[0].generation}` : '';
  const file = besideStore(location, `${generation}-shard-${index}.mark`);
  const { newest } = readHighWaterMark(file);
  if (newest === undefined) return [];
  if (newest === 'damaged') return [`${file} is damaged: without it nobody knows whether payments are missing`];
  const found = await client.query(
    `select 1 from ${schema}.ledger where pruned_seq > $1 or (pruned_seq, pruned_link) = ($1, $2)
         or (end_seq, end_link) = ($1, $2)
       union all select 1 from ${schema}.payments where (seq, link) = ($1, $2)
       union all select 1 from ${schema}.settings
         where name = '${ACCEPTED_LOSSES}' and $1 || ' ' || $2 = any(string_to_array(value, chr(10)))`,
    [newest.number, newest.link],
  );
  return found.rows.length > 0 ? [] : [`${schema} lacks payment ${newest.number}, which ${file} names`];
}

function problemOf(name: string, error: unknown): Error {
  if (error instanceof PayboxError) return error;
  const what = `${name} was not taken over: ${reasonOf(error)}`;
  if (!(error instanceof pg.DatabaseError) && systemCodeOf(error) !== undefined) {
    return new MissingPeerError(what, 'start PostgreSQL, or correct databaseUrl', error);
  }
  return new ConfigError(what, 'nothing was changed; correct the reason, and try again');
}
