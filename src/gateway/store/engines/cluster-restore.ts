import pg from 'pg';
import { systemClock } from '../../../lib/clock.ts';
import { ConfigError } from '../../../lib/errors.ts';
import { CLUSTER_SCHEMA, nameOf } from './postgres-session.ts';

/** Marks a database into which a backup of a cluster is restored. No member starts while this schema exists. */
export const RESTORE_SCHEMA = 'paybox_restore';
/** "paycluste" in ASCII. This lock is held while the tables of the cluster are created. */
export const SETUP_LOCK = '8097881672190555237';
/** The schemas that an empty database has. */
const SYSTEM_SCHEMAS = /^(?:pg_.*|information_schema)$/;
/** The names of the sessions of gateways and members. */
const GATEWAY_SESSIONS = 'paybox%';
const USED_LOOK_MS = 100;
const USED_LOOKS_MAX = 30;

/** Restores a cluster into an empty database. The caller fills it between `begin` and `finish`, and closes this. */
export class ClusterRestore {
  /** True if an interrupted restore has already filled the database. */
  readonly isFilled: boolean;
  readonly #client: pg.Client;

  private constructor(client: pg.Client, isFilled: boolean) {
    this.#client = client;
    this.isFilled = isFilled;
  }

  /**
   * Marks the database. `digest` is the digest of the backup: only the same backup can finish an interrupted restore.
   * Throws ConfigError when a gateway or another restore uses the database, when it is not empty, or for another
   * backup.
   */
  static async begin(databaseUrl: string, digest: string): Promise<ClusterRestore> {
    const client = new pg.Client({ connectionString: databaseUrl, application_name: 'paybox-restore' });
    client.on('error', () => undefined);
    try {
      await client.connect();
      return new ClusterRestore(client, await mark(client, nameOf(databaseUrl), digest));
    } catch (error) {
      await client.end().catch(() => undefined);
      throw error;
    }
  }

  /** Lets members start. The new `generation` separates the cluster from the one whose payments they remember. */
  async finish(generation: string): Promise<void> {
    await this.#client.query('begin');
    await this.#client.query(`update ${CLUSTER_SCHEMA}.settings set generation = $1`, [generation]);
    await this.#client.query(
      `delete from ${CLUSTER_SCHEMA}.members; delete from ${CLUSTER_SCHEMA}.holders; drop schema ${RESTORE_SCHEMA} cascade; commit`,
    );
  }

  async close(): Promise<void> {
    await this.#client.end().catch(() => undefined);
  }
}

/** Returns whether the database was already filled. */
async function mark(client: pg.Client, name: string, digest: string): Promise<boolean> {
  const locked = await client.query<{ free: boolean }>(`select pg_try_advisory_lock(${SETUP_LOCK}) as free`);
  if (locked.rows[0]?.free !== true) {
    throw new ConfigError(`${name} is being restored, or a member starts there`, 'stop all members, and try again');
  }
  if (await isUsed(client)) {
    throw new ConfigError(`a gateway uses the database ${name}`, 'stop all members of the cluster first');
  }
  const { rows } = await client.query<{ nspname: string }>('select nspname from pg_namespace');
  const schemas = rows.map(({ nspname }) => nspname).filter((it) => !SYSTEM_SCHEMAS.test(it));
  if (schemas.includes(RESTORE_SCHEMA)) {
    const begun = await client.query<{ digest: string }>(`select digest from ${RESTORE_SCHEMA}.backup`);
    if (begun.rows[0]?.digest === digest) return schemas.includes(CLUSTER_SCHEMA);
    const what = `a restore of another backup into ${name} was stopped midway`;
    throw new ConfigError(what, 'run it again with that backup, or make an empty database and name it in databaseUrl');
  }
  const tables = await client.query(`select 1 from pg_tables where schemaname = 'public' limit 1`);
  if (tables.rows.length > 0 || schemas.some((it) => it !== 'public')) {
    const fix = 'make an empty one and name it in databaseUrl; the other stays what it is';
    throw new ConfigError(`the database ${name} is not empty`, fix);
  }
  await client.query(
    `begin; create schema ${RESTORE_SCHEMA}; create table ${RESTORE_SCHEMA}.backup (digest text not null)`,
  );
  await client.query(`insert into ${RESTORE_SCHEMA}.backup values ($1)`, [digest]);
  await client.query('commit');
  return false;
}

/** Returns whether a gateway uses the database. Waits a little, because a stopped member's sessions may end late. */
async function isUsed(client: pg.Client): Promise<boolean> {
  for (let look = 0; look < USED_LOOKS_MAX; look += 1) {
    const { rows } = await client.query(
      `select 1 from pg_stat_activity where datname = current_database() and application_name like $1
       and pid <> pg_backend_pid() limit 1`,
      [GATEWAY_SESSIONS],
    );
    if (rows.length === 0) return false;
    await systemClock.sleep(USED_LOOK_MS);
  }
  return true;
}

/** Throws ConfigError while a restore into this database is not finished. */
export async function refuseHalfRestored(
  query: (text: string, values: string[]) => Promise<{ rows: unknown[] }>,
  databaseUrl: string,
): Promise<void> {
  const { rows } = await query('select 1 from pg_namespace where nspname = $1', [RESTORE_SCHEMA]);
  if (rows.length === 0) return;
  const what = `databaseUrl: a restore into ${nameOf(databaseUrl)} was stopped midway, or goes on`;
  throw new ConfigError(what, 'run paybox restore again with the same backup to finish it');
}
