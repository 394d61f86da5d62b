import { Socket } from 'node:net';
import { type Dialect, type Kysely, PostgresDialect, type PostgresPool, type PostgresPoolClient } from 'kysely';
import pg, { type ClientBase, type PoolClient } from 'pg';
import { systemClock } from '../../../lib/clock.ts';
import { ConfigError, MissingPeerError, type PayboxError, reasonOf, systemCodeOf } from '../../../lib/errors.ts';
import type { Logger } from '../../../lib/log.ts';
import { Names } from '../../../lib/names.ts';
import type { Tables } from '../schema/tables.ts';
import { LockHolder } from './lock-holder.ts';

/** Until a connection is there, and for how long a query may wait for those before it. */
const CONNECT_TIMEOUT_MS = 5000;
/** The server gives a statement up, and the gateway a server that does not answer. */
const STATEMENT_TIMEOUT_MS = 5000;
const ANSWER_TIMEOUT_MS = 6000;
/** The server finds out in this time that a gateway is gone whose machine says nothing any more … */
const GONE_AFTER = { idleSeconds: 3, intervalSeconds: 2, probes: 2, silentMs: 7000 };
/** … so that the next one waits no longer than this for the lock. */
const LOCK_WAIT_MS = 8000;
/** A gateway that had it waits only for its own former session to end: whoever else has it has taken over. */
const REGAIN_WAIT_MS = 2000;
const LOCK_ANSWER_TIMEOUT_MS = LOCK_WAIT_MS + 2000;
/** A gateway that hangs says nothing, although its machine does: the server ends its session, and the lock, after this. */
const SILENT_MS_MAX = 10_000;
/** One that has nothing to ask says this often that it is there. */
const HEARTBEAT_MS = 3000;

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

/** A PostgreSQL database that this gateway may have. */
export interface PostgresDatabase {
  /** Its first query waits for the lock, and throws DatabaseInUseError where another gateway keeps it. */
  dialect: Dialect;
  /** Says in the database, which has its tables, that it is this gateway's now, and from then on that it is there. */
  begin(db: Kysely<Tables>): Promise<void>;
  /** Settles, with what to tell, once another gateway has the database: this one can do nothing more. */
  superseded: Promise<PayboxError>;
}

/** That another gateway has the database. */
export class DatabaseInUseError extends ConfigError {}

/**
 * A PostgreSQL database over one connection, which holds an advisory lock for as long as it lives: every query runs
 * under the lock, so that of two gateways on one database one can do nothing. A connection that is lost is made anew
 * by the next query, unless another gateway has had the database meanwhile.
 */
export function postgresDatabase(databaseUrl: string, log: Logger): PostgresDatabase {
  let session: Session | undefined;
  const tenure = new LockHolder(nameOf(databaseUrl));
  const closing = new AbortController();
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
      session = await beginSession(client, session, { databaseUrl, tenure });
    },
  });
  const sayHere = async () => {
    // Whoever needs the database meets the error too.
    await pool.query('select 1').catch(() => undefined);
  };
  // Whoever queries meets the error too; without a listener one that nobody waits for would end the process.
  const lost = (error: Error) => {
    log.warn('database-lost', { database: nameOf(databaseUrl), reason: reasonOf(error) });
    // At once, before anybody else asks: another gateway may have it.
    if (tenure.begun && !closing.signal.aborted) void sayHere();
  };
  pool.on('error', lost);
  pool.on('connect', (client) => client.on('error', () => undefined));
  const lent: PostgresPool = {
    connect: async () => {
      tenure.assertOwn();
      return lend(await pool.connect());
    },
    end: () => {
      closing.abort();
      return pool.end().finally(() => names.close());
    },
  };
  return {
    dialect: new PostgresDialect({ pool: lent }),
    begin: async (db) => {
      await tenure.begin(db);
      void beating(sayHere, closing.signal);
    },
    superseded: tenure.over,
  };
}

async function beating(sayHere: () => Promise<void>, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await systemClock.sleep(HEARTBEAT_MS, signal);
    if (!signal.aborted) await sayHere();
  }
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
  { databaseUrl, tenure }: { databaseUrl: string; tenure: LockHolder },
): Promise<Session | undefined> {
  const { idleSeconds, intervalSeconds, probes, silentMs } = GONE_AFTER;
  await client.query(
    // What was answered must survive a power cut, whatever the database has for a default.
    `set synchronous_commit = on; set statement_timeout = 0; set lock_timeout = ${tenure.begun ? REGAIN_WAIT_MS : LOCK_WAIT_MS};
     set tcp_keepalives_idle = ${idleSeconds}; set tcp_keepalives_interval = ${intervalSeconds};
     set tcp_keepalives_count = ${probes}; set tcp_user_timeout = ${silentMs}`,
  );
  if (former !== undefined) {
    await client.query(
      'select pg_terminate_backend(pid) from pg_stat_activity where pid = $1 and backend_start::text = $2',
      [former.pid, former.since],
    );
  }
  // Without the lock, so that a gateway that was left behind learns it at once; then with it, as that may take a while.
  await tenure.check(client);
  await lock(client, databaseUrl).catch((error: unknown) => {
    throw tenure.begun && error instanceof DatabaseInUseError ? tenure.end() : error;
  });
  await tenure.check(client);
  await client.query(`set statement_timeout = ${STATEMENT_TIMEOUT_MS}`);
  // Not there before PostgreSQL 14: a gateway that hangs then keeps the lock.
  await client.query(
    `select set_config(name, '${SILENT_MS_MAX}', false) from pg_settings
     where name in ('idle_session_timeout', 'idle_in_transaction_session_timeout')`,
  );
  const own = 'select pid, backend_start::text as since from pg_stat_activity where pid = pg_backend_pid()';
  return (await client.query<Session>(own)).rows[0];
}

async function lock(client: ClientBase, databaseUrl: string): Promise<void> {
  const timeout = { query_timeout: LOCK_ANSWER_TIMEOUT_MS };
  try {
    await client.query({ text: 'select pg_advisory_lock($1)', values: [LOCK_KEY], ...timeout });
  } catch (error) {
    if (!(error instanceof pg.DatabaseError) || error.code !== LOCK_NOT_AVAILABLE) throw error;
    throw new DatabaseInUseError(
      `databaseUrl: another gateway uses ${nameOf(databaseUrl)}`,
      'stop the other gateway, give this one a database of its own, or say standby: true to wait for its turn',
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
