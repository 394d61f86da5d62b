import { Socket } from 'node:net';
import { type Dialect, PostgresDialect, type PostgresPool, type PostgresPoolClient } from 'kysely';
import pg, { type ClientBase, type PoolClient } from 'pg';
import { systemClock } from '../../lib/clock.ts';
import { ConfigError, MissingPeerError, reasonOf, systemCodeOf } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import { Names } from '../../lib/names.ts';

/** Until a connection is there, and for how long a query may wait for those before it. */
const CONNECT_TIMEOUT_MS = 5000;
/** The server gives a statement up, and the gateway a server that does not answer. */
const STATEMENT_TIMEOUT_MS = 5000;
const ANSWER_TIMEOUT_MS = 6000;
/** The server finds out in this time that a gateway is gone whose machine says nothing any more … */
const GONE_AFTER = { idleSeconds: 3, intervalSeconds: 2, probes: 2, silentMs: 7000 };
/** … so that the next one waits no longer than this for the lock. */
const LOCK_WAIT_MS = 8000;
const LOCK_ANSWER_TIMEOUT_MS = LOCK_WAIT_MS + 2000;

/** Of the advisory lock: "paybox" in ASCII. */
const LOCK_KEY = 0x70_61_79_62_6f_78;

const INT8 = 20;
/** SQLSTATE of what a start may meet. */
const LOCK_NOT_AVAILABLE = '55P03';
const NOT_READY = ['57P03', '53300'];
const NO_DATABASE = '3D000';
/** Class of refused logins. */
const LOGIN_REFUSED = /^28/;

/** A connection as the server knows it. */
interface Session {
  pid: number;
  since: string;
}

/**
 * A PostgreSQL database over one connection, which holds an advisory lock for as long as it lives: every query runs
 * under the lock, so that of two gateways on one database one can do nothing. A connection that is lost is made anew
 * by the next query.
 */
export function postgresDialect(databaseUrl: string, log: Logger): Dialect {
  let session: Session | undefined;
  // Not those of partners: whose names nobody knows must not be in the way of the store.
  const names = new Names({ clock: systemClock });
  const pool = new pg.Pool({
    connectionString: databaseUrl,
    max: 1,
    // Never closed while it is good: the lock would go with it.
    idleTimeoutMillis: 0,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: ANSWER_TIMEOUT_MS,
    keepAlive: true,
    stream: () => new NamedSocket(names),
    application_name: 'paybox-gateway',
    types: { getTypeParser: (oid, format) => (oid === INT8 ? Number : pg.types.getTypeParser(oid, format)) },
    onConnect: async (client) => {
      session = await beginSession(client, session, databaseUrl);
    },
  });
  // Whoever queries meets the error too; without a listener one that nobody waits for would end the process.
  const lost = (error: Error) => log.warn('database-lost', { database: nameOf(databaseUrl), reason: reasonOf(error) });
  pool.on('error', lost);
  pool.on('connect', (client) => client.on('error', () => undefined));
  const lent: PostgresPool = {
    connect: async () => lend(await pool.connect()),
    end: () => pool.end().finally(() => names.close()),
  };
  return new PostgresDialect({ pool: lent });
}

/** Dials by names that are found apart from the threads of the process. */
class NamedSocket extends Socket {
  readonly #names: Names;

  constructor(names: Names) {
    super();
    this.#names = names;
  }

  /** As the driver calls it; it has no other way to say how names are found. */
  override connect(...[port, host]: unknown[]): this {
    return super.connect({ port: Number(port), host: String(host), lookup: this.#names.lookup() });
  }
}

/** What a start on PostgreSQL failed with, as a person is told: which database, and what to do. Never the password. */
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
    return 'correct user and password in databaseUrl, or let this user in at the server';
  }
  if (code === NO_DATABASE) return 'make this database, or correct its name in databaseUrl';
  if (/\bSSL\b/.test(reason)) return 'switch TLS on at the server, or take sslmode out of databaseUrl';
  if (/certificate/.test(reason))
    return 'name the CA of the server as sslrootcert in databaseUrl, and its host as in its certificate';
  return 'name a database of this gateway alone, and a user who may make tables in it';
}

/** Whether no server answers there, or not yet. */
function isAway(error: unknown): boolean {
  if (error instanceof pg.DatabaseError) return NOT_READY.includes(error.code ?? '');
  return /^E(?!RR_)/.test(systemCodeOf(error) ?? '') || /^Connection terminated|timeout/.test(reasonOf(error));
}

/** `host:port/database`. */
function nameOf(databaseUrl: string): string {
  const { host, pathname } = new URL(databaseUrl);
  return `${host}${pathname}`;
}

/** Limits, then the lock, on a new connection; `former` is the one before it, which the server may still hold open. */
async function beginSession(
  client: ClientBase,
  former: Session | undefined,
  databaseUrl: string,
): Promise<Session | undefined> {
  const { idleSeconds, intervalSeconds, probes, silentMs } = GONE_AFTER;
  await client.query(
    // What was answered must survive a power cut, whatever the database has for a default.
    `set synchronous_commit = on; set statement_timeout = 0; set lock_timeout = ${LOCK_WAIT_MS};
     set tcp_keepalives_idle = ${idleSeconds}; set tcp_keepalives_interval = ${intervalSeconds};
     set tcp_keepalives_count = ${probes}; set tcp_user_timeout = ${silentMs}`,
  );
  if (former !== undefined) {
    await client.query(
      'select pg_terminate_backend(pid) from pg_stat_activity where pid = $1 and backend_start::text = $2',
      [former.pid, former.since],
    );
  }
  await lock(client, databaseUrl);
  await client.query(`set statement_timeout = ${STATEMENT_TIMEOUT_MS}`);
  const own = 'select pid, backend_start::text as since from pg_stat_activity where pid = pg_backend_pid()';
  return (await client.query<Session>(own)).rows[0];
}

async function lock(client: ClientBase, databaseUrl: string): Promise<void> {
  const timeout = { query_timeout: LOCK_ANSWER_TIMEOUT_MS };
  try {
    await client.query({ text: 'select pg_advisory_lock($1)', values: [LOCK_KEY], ...timeout });
  } catch (error) {
    if (!(error instanceof pg.DatabaseError) || error.code !== LOCK_NOT_AVAILABLE) throw error;
    throw new ConfigError(
      `databaseUrl: another gateway uses ${nameOf(databaseUrl)}`,
      'stop the other gateway, or give this one a database of its own',
    );
  }
}

/** A connection that is closed, not used again, once a query of it did not end with an answer of the server. */
function lend(client: PoolClient): PostgresPoolClient {
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
  // Without a cursor in the dialect, this is the one form of a query that comes here.
  return { query, release } as unknown as PostgresPoolClient;
}
