import { Socket } from 'node:net';
import { type Dialect, type Kysely, PostgresDialect, type PostgresPool, type PostgresPoolClient } from 'kysely';
import pg, { type ClientBase, type PoolClient } from 'pg';
import { systemClock } from '../../lib/clock.ts';
import { ConfigError, MissingPeerError, type PayboxError, reasonOf, systemCodeOf } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import { HostResolver } from '../../lib/resolver.ts';
import type { Tables } from '../schema/tables.ts';
import { LockHolder } from './lock-holder.ts';

/** For connecting, and for a query to wait for the queries before it. */
const CONNECT_TIMEOUT_MS = 5000;
/** The server cancels a statement after the first time. The gateway gives up an answer after the second. */
const STATEMENT_TIMEOUT_MS = 5000;
const ANSWER_TIMEOUT_MS = 6000;
/** TCP keepalive: within 7 s the server notices that the machine of a gateway is gone. */
const KEEPALIVE = { idleSeconds: 3, intervalSeconds: 2, probes: 2, silentMs: 7000 };
/** Longer than that, so that the next gateway gets the lock. */
const LOCK_WAIT_MS = 8000;
/** A gateway that had the lock waits only until its own former session ends. Any other holder has taken over. */
const REGAIN_WAIT_MS = 2000;
const LOCK_ANSWER_TIMEOUT_MS = LOCK_WAIT_MS + 2000;
/** After this time without a query the server ends the session, and releases the lock: the gateway hangs. */
const IDLE_SESSION_MS_MAX = 10_000;
/** A gateway without other queries sends one at this interval. */
const HEARTBEAT_MS = 3000;

/** "paybox" in ASCII. */
const LOCK_KEY = 0x70_61_79_62_6f_78;

const INT8 = 20;
/** SQLSTATE. */
const LOCK_NOT_AVAILABLE = '55P03';
const NOT_READY = ['57P03', '53300'];
const NO_DATABASE = '3D000';
/** SQLSTATE class of refused logins. */
const LOGIN_REFUSED = /^28/;

/** Server process of a connection. The start time is needed, because a pid can be reused. */
interface BackendProcess {
  pid: number;
  since: string;
}

export interface PostgresDatabase {
  /** Its first query waits for the lock, and throws DatabaseInUseError when another gateway has it. */
  dialect: Dialect;
  /** Registers this gateway in the migrated database, and begins the heartbeat. */
  register(db: Kysely<Tables>): Promise<void>;
  /** Resolves with an error once another gateway has taken over the database: this one can do nothing more. */
  superseded: Promise<PayboxError>;
}

export class DatabaseInUseError extends ConfigError {}

/**
 * A PostgreSQL database over a single connection that holds an advisory lock. Every query runs under the lock, so a
 * second gateway can do nothing. The next query reopens a lost connection, unless another gateway has taken over
 * meanwhile.
 */
export function postgresDatabase(databaseUrl: string, log: Logger): PostgresDatabase {
  let backend: BackendProcess | undefined;
  const holder = new LockHolder(nameOf(databaseUrl));
  const closing = new AbortController();
  // Not the resolver for partners: their slow lookups must not delay the store.
  const names = new HostResolver({ clock: systemClock });
  const pool = new pg.Pool({
    connectionString: databaseUrl,
    max: 1,
    // Never closed while it works: that would release the lock.
    idleTimeoutMillis: 0,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: ANSWER_TIMEOUT_MS,
    keepAlive: true,
    stream: () => new NamedSocket(names),
    application_name: 'paybox-gateway',
    types: { getTypeParser: (oid, format) => (oid === INT8 ? Number : pg.types.getTypeParser(oid, format)) },
    onConnect: async (client) => {
      backend = await beginSession(client, backend, { databaseUrl, holder });
    },
  });
  const heartbeat = async () => {
    // The next query throws the error too.
    await pool.query('select 1').catch(() => undefined);
  };
  // Without a listener an error of the idle connection would end the process. The next query throws it too.
  const lost = (error: Error) => {
    log.warn('database-lost', { database: nameOf(databaseUrl), reason: reasonOf(error) });
    // At once: another gateway may have taken the database over.
    if (holder.registered && !closing.signal.aborted) void heartbeat();
  };
  pool.on('error', lost);
  pool.on('connect', (client) => client.on('error', () => undefined));
  const checkedPool: PostgresPool = {
    connect: async () => {
      holder.assertHolder();
      return closedWhenBroken(await pool.connect());
    },
    end: () => {
      closing.abort();
      return pool.end().finally(() => names.close());
    },
  };
  return {
    dialect: new PostgresDialect({ pool: checkedPool }),
    register: async (db) => {
      await holder.register(db);
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

/** Resolves names without the thread pool of the process. */
class NamedSocket extends Socket {
  readonly #names: HostResolver;

  constructor(names: HostResolver) {
    super();
    this.#names = names;
  }

  /** The driver has no option for a lookup function, but it calls this. */
  override connect(...[port, host]: unknown[]): this {
    return super.connect({ port: Number(port), host: String(host), lookup: this.#names.lookup() });
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

/** `host:port/database`. */
function nameOf(databaseUrl: string): string {
  const { host, pathname } = new URL(databaseUrl);
  return `${host}${pathname}`;
}

/**
 * Sets limits and takes the lock on a new connection. Ends the session `former`, which the server may have kept open.
 */
async function beginSession(
  client: ClientBase,
  former: BackendProcess | undefined,
  { databaseUrl, holder }: { databaseUrl: string; holder: LockHolder },
): Promise<BackendProcess | undefined> {
  const { idleSeconds, intervalSeconds, probes, silentMs } = KEEPALIVE;
  await client.query(
    // synchronous_commit: what the gateway has acknowledged must survive a power cut, whatever the default is.
    `set synchronous_commit = on; set statement_timeout = 0; set lock_timeout = ${holder.registered ? REGAIN_WAIT_MS : LOCK_WAIT_MS};
     set tcp_keepalives_idle = ${idleSeconds}; set tcp_keepalives_interval = ${intervalSeconds};
     set tcp_keepalives_count = ${probes}; set tcp_user_timeout = ${silentMs}`,
  );
  if (former !== undefined) {
    await client.query(
      'select pg_terminate_backend(pid) from pg_stat_activity where pid = $1 and backend_start::text = $2',
      [former.pid, former.since],
    );
  }
  // Checked before the wait for the lock, so that a superseded gateway knows at once, and again after it.
  await holder.check(client);
  await lock(client, databaseUrl).catch((error: unknown) => {
    throw holder.registered && error instanceof DatabaseInUseError ? holder.supersede() : error;
  });
  await holder.check(client);
  await client.query(`set statement_timeout = ${STATEMENT_TIMEOUT_MS}`);
  // PostgreSQL 13 and older lack these settings: there a gateway that hangs keeps the lock.
  await client.query(
    `select set_config(name, '${IDLE_SESSION_MS_MAX}', false) from pg_settings
     where name in ('idle_session_timeout', 'idle_in_transaction_session_timeout')`,
  );
  const own = 'select pid, backend_start::text as since from pg_stat_activity where pid = pg_backend_pid()';
  return (await client.query<BackendProcess>(own)).rows[0];
}

async function lock(client: ClientBase, databaseUrl: string): Promise<void> {
  const timeout = { query_timeout: LOCK_ANSWER_TIMEOUT_MS };
  try {
    await client.query({ text: 'select pg_advisory_lock($1)', values: [LOCK_KEY], ...timeout });
  } catch (error) {
    if (!(error instanceof pg.DatabaseError) || error.code !== LOCK_NOT_AVAILABLE) throw error;
    throw new DatabaseInUseError(
      `databaseUrl: another gateway uses ${nameOf(databaseUrl)}`,
      'stop the other gateway, give this one a database of its own, or set standby: true to wait for its turn',
    );
  }
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
