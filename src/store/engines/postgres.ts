import { type Dialect, type Kysely, type PostgresPool, type PostgresPoolClient, sql } from 'kysely';
import pg, { type PoolClient } from 'pg';
import { systemClock } from '../../lib/clock.ts';
import { ConfigError, MissingPeerError, type PayboxError, reasonOf, systemCodeOf } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import { HostResolver } from '../../lib/resolver.ts';
import type { Tables } from '../schema/tables.ts';
import type { StoreShard } from '../store-files.ts';
import { GroupCommit } from './group-commit.ts';
import { COMMIT_IN_MEMORY, LockHolder } from './lock-holder.ts';
import { NamedSocket } from './named-socket.ts';
import { DurablePostgresDialect } from './postgres-dialect.ts';
import { secondConnection } from './postgres-second.ts';
import { ANSWER_TIMEOUT_MS, type BackendProcess, beginSession, nameOf } from './postgres-session.ts';
import { applicationOf, schemaOf } from './shard-schema.ts';

export { DatabaseInUseError } from './postgres-session.ts';

/** For connecting, and for a query to wait for the queries before it. */
const CONNECT_TIMEOUT_MS = 5000;
/** A gateway without other queries sends one at this interval. */
const HEARTBEAT_MS = 3000;
/** Statements that commit nothing by themselves. */
const READS_ONLY = /^(select|begin|start transaction|commit|rollback)\b/;

const INT8 = 20;
const NOT_READY = ['57P03', '53300'];
const NO_DATABASE = '3D000';
/** SQLSTATE class of refused logins. */
const LOGIN_REFUSED = /^28/;

export interface PostgresDatabase {
  /** Its first query waits for the lock, and throws DatabaseInUseError when another gateway has it. */
  dialect: Dialect;
  /** Registers this gateway in the migrated database, and begins the heartbeat. */
  register(db: Kysely<Tables>): Promise<void>;
  /** Resolves with an error once another gateway has taken over the database: this one can do nothing more. */
  superseded: Promise<PayboxError>;
}

/**
 * A PostgreSQL database, or one shard in it, over a single connection that holds an advisory lock. Every query runs under the lock, so a
 * second gateway can do nothing. The next query reopens a lost connection, unless another gateway has taken over
 * meanwhile. A query settles once all that it may have seen is on the disk: see GroupCommit.
 */
export function postgresDatabase(databaseUrl: string, log: Logger, shard?: StoreShard): PostgresDatabase {
  let backend: BackendProcess | undefined;
  const name = shard === undefined ? nameOf(databaseUrl) : `shard ${shard.index} of ${nameOf(databaseUrl)}`;
  const holder = new LockHolder(name);
  const closing = new AbortController();
  // Not the resolver for partners: their slow lookups must not delay the store.
  const names = new HostResolver({ clock: systemClock });
  const config = {
    connectionString: databaseUrl,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: ANSWER_TIMEOUT_MS,
    keepAlive: true,
    stream: () => new NamedSocket(names),
    ...(shard && { options: `-c search_path=${schemaOf(shard.index)}` }),
    application_name: shard === undefined ? 'paybox-gateway' : applicationOf(shard),
    types: {
      getTypeParser: (oid: number, format?: 'text' | 'binary') =>
        oid === INT8 ? Number : pg.types.getTypeParser(oid, format),
    },
  };
  const pool = new pg.Pool({
    ...config,
    max: 1,
    // Never closed while it works: that would release the lock.
    idleTimeoutMillis: 0,
    onConnect: async (client) => {
      backend = await beginSession(client, backend, { databaseUrl, holder, shard });
      commits.writerOpened();
    },
  });
  const commits = new GroupCommit({
    sync: async () => {
      const client = closedWhenBroken(await pool.connect());
      await holder.sync(client).finally(() => client.release());
    },
    isBusy: () => pool.waitingCount > 0,
  });
  const tendSecond = secondConnection({ databaseUrl, config, holder, commits, log, closing: closing.signal });
  const heartbeat = async () => {
    // The next query throws the error too.
    await pool.query('select 1').then(tendSecond, () => undefined);
  };
  // Without a listener an error of the idle connection would end the process. The next query throws it too.
  const lost = (error: Error) => {
    log.warn('database-lost', { database: name, reason: reasonOf(error) });
    // At once: another gateway may have taken the database over.
    if (holder.registered && !closing.signal.aborted) void heartbeat();
  };
  pool.on('error', lost);
  pool.on('connect', (client) => client.on('error', () => undefined));
  const checkedPool: PostgresPool = {
    connect: async () => {
      holder.assertHolder();
      const client = closedWhenBroken(await pool.connect());
      return holder.registered ? counted(client, commits) : client;
    },
    end: () => {
      closing.abort();
      commits.closeSecond();
      return pool.end().finally(() => names.close());
    },
  };
  return {
    dialect: new DurablePostgresDialect({ pool: checkedPool }, commits),
    register: async (db) => {
      await holder.register(db);
      await sql.raw(COMMIT_IN_MEMORY).execute(db);
      await tendSecond();
      void beat(heartbeat, closing.signal);
    },
    superseded: holder.superseded,
  };
}

async function beat(heartbeat: () => Promise<void>, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await systemClock.sleep(HEARTBEAT_MS, signal);
    if (!signal.aborted) await heartbeat();
  }
}

/** Adds the database and advice to an error of the start. Never shows the password. */
export function postgresProblem(databaseUrl: string, error: unknown): Error {
  if (error instanceof ConfigError) return error;
  const what = `databaseUrl: ${nameOf(databaseUrl)} cannot be used: ${reasonOf(error)}`;
  if (isAway(error)) return new MissingPeerError(what, 'start PostgreSQL, or correct host and port', error);
  return new ConfigError(what, fixOf(error));
}

function fixOf(error: unknown): string {
  const code = systemCodeOf(error) ?? '';
  const reason = reasonOf(error);
  if (LOGIN_REFUSED.test(code) || /\bpassword\b/.test(reason)) {
    return 'correct user and password in databaseUrl, or allow this user at the server';
  }
  if (code === NO_DATABASE) return 'make this database, or correct its name in databaseUrl';
  if (/\bSSL\b/.test(reason)) return 'switch TLS on at the server, or take sslmode out of databaseUrl';
  if (/certificate/.test(reason))
    return 'name the CA of the server as sslrootcert in databaseUrl, and its host as in its certificate';
  return 'name a database of this gateway alone, and a user who may make tables in it';
}

/** Whether the server does not answer, or is not ready yet. */
function isAway(error: unknown): boolean {
  if (error instanceof pg.DatabaseError) return NOT_READY.includes(error.code ?? '');
  return /^E(?!RR_)/.test(systemCodeOf(error) ?? '') || /^Connection terminated|timeout/.test(reasonOf(error));
}

/** Closes a connection, instead of reusing it, after a query that the server did not answer. */
function closedWhenBroken(client: PoolClient): PostgresPoolClient {
  let broken: unknown;
  const query = async (sql: string, parameters: readonly unknown[]) => {
    if (broken !== undefined) throw broken;
    try {
      return await client.query(sql, [...parameters]);
    } catch (error) {
      if (!(error instanceof pg.DatabaseError) || error.severity === 'FATAL') broken = error;
      throw error;
    }
  };
  const release = () => client.release(broken !== undefined);
  // The dialect uses no cursor, so this is the only form of query.
  return { query, release } as unknown as PostgresPoolClient;
}

/** A turn on the connection that writes. */
function counted(client: PostgresPoolClient, commits: GroupCommit): PostgresPoolClient {
  const turn = commits.begin();
  let mayWrite = false;
  const query = (text: string, parameters: readonly unknown[]) => {
    mayWrite ||= !READS_ONLY.test(text);
    return client.query(text, parameters);
  };
  const release = () => {
    if (mayWrite) commits.written(turn);
    client.release();
  };
  // The dialect uses no cursor, so this is the only form of query.
  return { query, release } as unknown as PostgresPoolClient;
}
