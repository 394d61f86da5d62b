import { type Dialect, type Kysely, PostgresDialect, type PostgresPool, type PostgresPoolClient, sql } from 'kysely';
import pg, { type ClientBase } from 'pg';
import { systemClock } from '../../../lib/clock.ts';
import { ConfigError, MissingPeerError, PayboxError, reasonOf, systemCodeOf } from '../../../lib/errors.ts';
import type { Logger } from '../../../lib/log.ts';
import { HostResolver } from '../../../lib/resolver.ts';
import type { LedgerGuard } from '../integrity/ledger-guard.ts';
import type { Tables } from '../schema/tables.ts';
import { repeated } from '../transact.ts';
import { type DatabaseClock, NOW_MS_SQL } from './database-clock.ts';
import { GroupCommit } from './group-commit.ts';
import { COMMIT_IN_MEMORY, LockHolder } from './lock-holder.ts';
import { NamedSockets } from './named-socket.ts';
import { OwnSessions } from './own-sessions.ts';
import { DurablePostgresDialect } from './postgres-dialect.ts';
import { secondConnection } from './postgres-second.ts';
import { ANSWER_TIMEOUT_MS, beginSession, nameOf, sessionUrl } from './postgres-session.ts';
import { WriterConnection } from './postgres-writer.ts';
import type { StoreSharing } from './store-sharing.ts';

export { DatabaseInUseError } from './postgres-session.ts';

/** The longest time to connect, and for a query to wait for the queries before it. */
const CONNECT_TIMEOUT_MS = 5000;
/** A gateway without other queries sends one in this interval. */
const HEARTBEAT_MS = 3000;
/** The interval while it has no session. It is short, because a gateway that waits for the lock might come first. */
const REGAIN_MS = 250;
/** Statements that commit nothing by themselves. */
const READS_ONLY = /^(select|with recursive|begin|start transaction|commit|rollback)\b/;
/** Statements that a transaction begins and ends with. */
const BEGINS = /^(begin|start transaction)\b/;
const ENDS = /^(commit|rollback)\b/;

const INT8 = 20;
const NOT_READY = ['57P03', '53300'];
const NO_DATABASE = '3D000';
const DISK_FULL = '53100';
const NO_RIGHT = '42501';
const READ_ONLY = '25006';
/** The SQLSTATE class of refused logins. */
const LOGIN_REFUSED = /^28/;

interface PostgresParts {
  guard: LedgerGuard;
  /** Compared with the database at each heartbeat. */
  time: DatabaseClock | undefined;
  log: Logger;
  sharing: StoreSharing | undefined;
}

export interface PostgresDatabase {
  /** The first query waits for the lock, and throws DatabaseInUseError when another gateway holds it. */
  dialect: Dialect;
  /** Its reads do not wait until the disk has what they have seen. Undefined if nobody shares the database. */
  early: Dialect | undefined;
  /** Registers this gateway in the migrated database, and starts the heartbeat. */
  register(db: Kysely<Tables>): Promise<void>;
  /** Resolves with an error once another gateway has taken over the database. This gateway can then do nothing more. */
  superseded: Promise<PayboxError>;
}

/**
 * Opens a PostgreSQL database.
 *
 * Theory. A gateway holds an advisory lock on one connection, and runs every query on it. The server releases the lock
 * with the session. So a gateway alone is the only one that can write at any moment, and gateways that share a database
 * exclude only one that is alone. The next query reopens a lost connection.
 *
 * Invariants.
 * - No query runs without the lock. A gateway alone, and gateways of a cluster, can do nothing at a database of the other.
 * - Before the first write of a session, LedgerGuard compares the database with the acknowledged payments.
 * - The id of a gateway's run is in the database. A run that does not find it ends, because its data in memory is old.
 * - Transactions are serializable. What is right for one gateway after the other is right for gateways at once.
 * - A query settles once everything that it may have seen is on the disk (see GroupCommit). Another gateway may have
 *   committed it.
 *
 * Tried and failed. A gateway counted its own session, which hung at the server, as another gateway, and ended. So
 * OwnSessions knows all sessions of this run.
 */
export function postgresDatabase(databaseUrl: string, { guard, time, log, sharing }: PostgresParts): PostgresDatabase {
  const name = nameOf(databaseUrl);
  const holder = new LockHolder(name, sharing);
  const own = new OwnSessions();
  const server = new ServerIdentity(name, log);
  const closing = new AbortController();
  // This is not the resolver for partners, because their slow lookups must not delay the store.
  const names = new HostResolver({ clock: systemClock });
  const sockets = new NamedSockets(names);
  const config = configOf(databaseUrl, sockets, sharing);
  const writer = new WriterConnection({
    name,
    config,
    sockets,
    holder,
    guard,
    log,
    closing: closing.signal,
    begin: async (client) => {
      await beginSession(client, { databaseUrl, holder, own, guard, sharing });
      commits.writerOpened();
      if (!guard.isRefusing) await server.see(client);
    },
    lost: () => {
      // The heartbeat runs at once, because another gateway may have taken over the database.
      if (holder.registered && !closing.signal.aborted) void heartbeat();
    },
  });
  const commits = new GroupCommit({
    sync: () => writer.use((client) => holder.sync(client)),
    isBusy: () => writer.isBusy,
  });
  const tendSecond = secondConnection({
    databaseUrl,
    config,
    holder,
    own,
    commits,
    log,
    closing: closing.signal,
  });
  /** Returns the time until the next heartbeat. Never rejects, because the next query throws the error too. */
  const heartbeat = async () => {
    try {
      if (guard.isRefusing) await writer.lookAgain();
      else if (sharing !== undefined) await writer.hearOthers();
      const look = (client: PostgresPoolClient) =>
        client.query<{ now_ms: number }>(`select ${NOW_MS_SQL} as now_ms`, []);
      await writer.use((client) => (time === undefined ? look(client) : time.measure(() => look(client))));
      await tendSecond();
      return HEARTBEAT_MS;
    } catch {
      return guard.isRefusing ? HEARTBEAT_MS : REGAIN_MS;
    }
  };
  const pool: PostgresPool = {
    connect: async () => {
      holder.assertHolder();
      const client = await writer.connect();
      return holder.registered ? counted(client, commits, sharing !== undefined) : client;
    },
    end: () => {
      closing.abort();
      commits.closeSecond();
      return writer.end().finally(() => names.close());
    },
  };
  const abandon = (lateMs: number | undefined) => {
    if (lateMs !== undefined) log.warn('end-timed-out', { part: `database ${name}`, withinMs: lateMs });
    sockets.abandon();
  };
  return {
    dialect: new DurablePostgresDialect({ pool, commits, abandon }),
    early: sharing && new PostgresDialect({ pool }),
    register: async (db) => {
      await holder.register(db);
      await sql.raw(COMMIT_IN_MEMORY).execute(db);
      await heartbeat();
      void beat(heartbeat, closing.signal);
    },
    superseded: holder.superseded,
  };
}

function configOf(databaseUrl: string, sockets: NamedSockets, sharing: StoreSharing | undefined): pg.ClientConfig {
  return {
    connectionString: sessionUrl(databaseUrl),
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: ANSWER_TIMEOUT_MS,
    keepAlive: true,
    stream: () => sockets.make(),
    application_name: sharing?.application ?? 'paybox-gateway',
    types: {
      getTypeParser: (oid: number, format?: 'text' | 'binary') =>
        oid === INT8 ? Number : pg.types.getTypeParser(oid, format),
    },
  };
}

async function beat(heartbeat: () => Promise<number>, signal: AbortSignal): Promise<void> {
  for (let waitMs = HEARTBEAT_MS; !signal.aborted; ) {
    await systemClock.sleep(waitMs, signal);
    if (!signal.aborted) waitMs = await heartbeat();
  }
}

/** Adds the database and advice to an error of the start. Never shows the password. */
export function postgresProblem(databaseUrl: string, error: unknown): Error {
  if (error instanceof ConfigError || error instanceof MissingPeerError) return error;
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
  if (code === DISK_FULL) return 'make room on the disk of the database server';
  if (code === NO_RIGHT) return 'grant the user of databaseUrl all rights on the tables of this database';
  if (code === READ_ONLY) return 'name the primary server in databaseUrl, and let this user write';
  if (code === NO_DATABASE) return 'make this database, or correct its name in databaseUrl';
  if (/\bSSL\b/.test(reason)) return 'switch TLS on at the server, or take sslmode out of databaseUrl';
  if (/certificate/.test(reason))
    return 'name the CA of the server as sslrootcert in databaseUrl, and its host as in its certificate';
  return 'name a database that only gateways use, and a user who may make tables in it';
}

/** Returns whether the server does not answer, or is not ready yet. */
function isAway(error: unknown): boolean {
  if (error instanceof PayboxError) return error.severity === 'retryable';
  if (error instanceof pg.DatabaseError) return NOT_READY.includes(error.code ?? '');
  return /^E(?!RR_)/.test(systemCodeOf(error) ?? '') || /^Connection terminated|timeout/.test(reasonOf(error));
}

/**
 * Counts a turn on the writing connection. Repeats a statement that conflicts with a transaction of another gateway, but
 * not within a transaction, which the caller must repeat from its start (see `transact`).
 */
function counted(client: PostgresPoolClient, commits: GroupCommit, isShared: boolean): PostgresPoolClient {
  const turn = commits.begin();
  let mayWrite = false;
  let isInTransaction = false;
  const query = async (text: string, parameters: readonly unknown[]) => {
    mayWrite ||= !READS_ONLY.test(text);
    isInTransaction ||= BEGINS.test(text);
    const ask = () => client.query(text, [...parameters]);
    const answer = await (isInTransaction ? ask() : repeated(ask));
    if (ENDS.test(text)) isInTransaction = false;
    if (text === 'rollback') mayWrite = false;
    return answer;
  };
  const release = () => {
    if (mayWrite) commits.written(turn);
    else if (isShared) commits.seen(turn);
    client.release();
  };
  // The dialect uses no cursor, so this is the only form of query.
  return { query, release } as unknown as PostgresPoolClient;
}

/** Not every hosted server lets its users ask this. Then that part is unknown. */
const SYSTEM = 'select system_identifier::text as answer from pg_control_system()';
/** A server gets another timeline when it is promoted or restored. */
const TIMELINE = 'select substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) as answer';

/** Remembers which server a gateway writes to. Logs when the address leads to another one. */
class ServerIdentity {
  readonly #database: string;
  readonly #log: Logger;
  #last: string | undefined;

  constructor(database: string, log: Logger) {
    this.#database = database;
    this.#log = log;
  }

  /** Checks the server of a new connection that may write. Never throws. */
  async see(client: ClientBase): Promise<void> {
    const [system, timeline] = [await answerOf(client, SYSTEM), await answerOf(client, TIMELINE)];
    const seen = `system ${system ?? 'unknown'}, timeline ${timeline ?? 'unknown'}`;
    if (this.#last !== undefined && this.#last !== seen) {
      const reason =
        'no acknowledged payment is missing; orders and reports of the last moments may be, if the standby was asynchronous';
      this.#log.warn('database-failed-over', { database: this.#database, from: this.#last, to: seen, reason });
    }
    this.#last = seen;
  }
}

async function answerOf(client: ClientBase, sql: string): Promise<string | undefined> {
  try {
    return (await client.query<{ answer: string }>(sql)).rows[0]?.answer;
  } catch {
    return undefined;
  }
}
