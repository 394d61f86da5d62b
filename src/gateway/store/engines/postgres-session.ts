import { hash } from 'node:crypto';
import { Kysely, PostgresDialect, type PostgresPool, type PostgresPoolClient } from 'kysely';
import pg, { type ClientBase } from 'pg';
import { systemClock } from '../../../lib/clock.ts';
import { ConfigError, MissingPeerError } from '../../../lib/errors.ts';
import type { LedgerGuard } from '../integrity/ledger-guard.ts';
import type { Tables } from '../schema/tables.ts';
import { refuseEarlierCluster } from './earlier-cluster.ts';
import { COMMIT_IN_MEMORY, DURABLE, type LockHolder } from './lock-holder.ts';
import type { OwnSessions } from './own-sessions.ts';
import type { StoreSharing } from './store-sharing.ts';

/** The server cancels a statement after the first time. The gateway stops waiting for an answer after the second. */
const STATEMENT_TIMEOUT_MS = 5000;
export const ANSWER_TIMEOUT_MS = 6000;
/** TCP keepalive: the server notices within 7 s that the machine of a gateway is gone. */
const KEEPALIVE = { idleSeconds: 3, intervalSeconds: 2, probes: 2, silentMs: 7000 };
/** This is longer than the keepalive, so that the next gateway gets the lock. */
const LOCK_WAIT_MS = 8000;
/** A gateway that held the lock waits for its own earlier session to end. Any other holder has taken over. */
const REGAIN_WAIT_MS = 2000;
/** The driver waits longer for the answer than the server for the lock. */
const LOCK_ANSWER = { query_timeout: LOCK_WAIT_MS + 2000 };
/** After this time without a query, the server ends the session and releases the lock, because the gateway hangs. */
const IDLE_SESSION_MS_MAX = 10_000;

/** A gateway alone looks in this interval whether gateways of a cluster have left the database. */
const LOOK_MS = 250;

/** "paybox" in ASCII. A gateway alone holds this lock, and gateways that share a database share it. */
export const LOCK_KEY = 0x70_61_79_62_6f_78n;
/** A SQLSTATE. */
const LOCK_NOT_AVAILABLE = '55P03';

export class DatabaseInUseError extends ConfigError {}

interface SessionDeps {
  databaseUrl: string;
  holder: LockHolder;
  own: OwnSessions;
  guard: LedgerGuard;
  sharing: StoreSharing | undefined;
}

/** Returns the name of a database for messages, as `host:port/database`. */
export function nameOf(databaseUrl: string): string {
  const { host, pathname } = new URL(databaseUrl);
  return `${host}${pathname}`;
}

/** Returns the URL without a name of sessions, which would replace the gateway's own. Others end sessions by that name. */
export function sessionUrl(databaseUrl: string): string {
  const url = new URL(databaseUrl);
  if (!url.searchParams.has('application_name')) return databaseUrl;
  url.searchParams.delete('application_name');
  return url.href;
}

/** Sets the limits of a new connection. Its commits wait for the disk, and for standbys if the server says so. */
export async function limitSession(client: ClientBase): Promise<void> {
  const { idleSeconds, intervalSeconds, probes, silentMs } = KEEPALIVE;
  await client.query(
    // synchronous_commit is set because acknowledged changes must survive a power cut, whatever the default is.
    `select set_config('${DURABLE}', case current_setting('synchronous_commit') when 'remote_apply' then 'remote_apply' else 'on' end, false);
     select set_config('synchronous_commit', current_setting('${DURABLE}'), false);
     set default_transaction_isolation = 'read committed'; set statement_timeout = ${STATEMENT_TIMEOUT_MS}; set tcp_keepalives_idle = ${idleSeconds};
     set tcp_keepalives_interval = ${intervalSeconds}; set tcp_keepalives_count = ${probes}; set tcp_user_timeout = ${silentMs}`,
  );
}

/**
 * Sets limits and takes the lock on a new connection. Ends earlier sessions of this gateway that the server has kept
 * open. Rejects with a retryable PayboxError while one of them holds the lock. Everything committed by then is on the
 * disk. Later commits of a registered gateway are made durable by GroupCommit. Before anything is written, `guard`
 * compares the database with the payments that this gateway has acknowledged. A database that lacks some stays locked,
 * so that no other gateway continues without them.
 */
export async function beginSession(
  client: ClientBase,
  { databaseUrl, holder, own, guard, sharing }: SessionDeps,
): Promise<void> {
  const db = queriesOver(client);
  holder.watch(client);
  await limitSession(client);
  await refuseStandby(client, databaseUrl);
  if (!holder.registered) await refuseEarlierCluster((text) => client.query(text), nameOf(databaseUrl));
  const lockTimeoutMs = holder.registered ? REGAIN_WAIT_MS : LOCK_WAIT_MS;
  await client.query(`set statement_timeout = 0; set lock_timeout = ${lockTimeoutMs}`);
  await own.begin(client);
  // The holder is checked before the wait for the lock, so that a superseded gateway knows at once, and again after it.
  // A database that lacks payments may be an older copy with another holder. That is not a takeover.
  if (holder.registered && (await guard.check(db, false))) await holder.check(client);
  await lock(client, { databaseUrl, own, sharing }, lockTimeoutMs).catch((error: unknown) => {
    throw holder.registered && error instanceof DatabaseInUseError ? holder.supersede() : error;
  });
  await client.query(`set statement_timeout = ${STATEMENT_TIMEOUT_MS}; set lock_timeout = 0`);
  if (!holder.registered) {
    await holder.check(client);
    await guard.checkFirst(db);
  } else if (await guard.check(db, true)) {
    await holder.sync(client);
    await client.query(COMMIT_IN_MEMORY);
  }
  // PostgreSQL 13 and older lack these settings. There, a gateway that hangs keeps the lock.
  await client.query(
    `select set_config(name, '${IDLE_SESSION_MS_MAX}', false) from pg_settings
     where name in ('idle_session_timeout', 'idle_in_transaction_session_timeout')`,
  );
}

/** Returns a query builder for this connection, as the store uses it. */
export function queriesOver(client: ClientBase): Kysely<Tables> {
  const own = { query: client.query.bind(client), release: () => undefined } as unknown as PostgresPoolClient;
  const pool: PostgresPool = { connect: async () => own, end: async () => undefined };
  return new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });
}

/** Refuses a standby. After a promotion it is a primary. Before that, it may still receive what it lacks. */
async function refuseStandby(client: ClientBase, databaseUrl: string): Promise<void> {
  const { rows } = await client.query<{ is_standby: boolean }>('select pg_is_in_recovery() as is_standby');
  if (rows[0]?.is_standby !== true) return;
  const what = `databaseUrl: ${nameOf(databaseUrl)} is a standby, which takes no writes`;
  throw new MissingPeerError(what, 'name the primary in databaseUrl, or promote this server');
}

type LockDeps = Pick<SessionDeps, 'databaseUrl' | 'own' | 'sharing'>;

/**
 * Takes the lock of the database: alone, or shared with the gateways of a cluster. Waits first for earlier sessions of
 * this gateway. A shared lock does not wait for them, so a gateway that shares has a lock of its run, too.
 */
async function lock(client: ClientBase, { databaseUrl, own, sharing }: LockDeps, waitMs: number): Promise<void> {
  const key = String(LOCK_KEY);
  if (sharing === undefined) {
    if ((await isUnshared(client, own, key, waitMs)) && (await took(client, 'pg_advisory_lock', key))) return;
  } else {
    const ofRun = lockOf(sharing.run);
    if (!(await took(client, 'pg_advisory_lock', ofRun))) throw await own.unended(client, ofRun);
    if (await took(client, 'pg_advisory_lock_shared', key)) return;
  }
  const rival = await own.rival(client, key);
  if (rival === undefined || (rival === 'shared' && sharing !== undefined)) throw await own.unended(client, key);
  throw inUse(databaseUrl, rival, sharing);
}

/**
 * Waits until no gateways of a cluster use the database. They could not get the lock behind a gateway that waits for it
 * alone. Returns false after too long.
 */
async function isUnshared(client: ClientBase, own: OwnSessions, key: string, waitMs: number): Promise<boolean> {
  for (let waitedMs = 0; (await own.rival(client, key)) === 'shared'; waitedMs += LOOK_MS) {
    if (waitedMs >= waitMs) return false;
    await systemClock.sleep(LOOK_MS);
  }
  return true;
}

/** Returns the key of a run's own lock. */
function lockOf(run: string): string {
  return String(BigInt.asIntN(64, BigInt(`0x${hash('sha256', `paybox run ${run}`)}`)));
}

/** Returns whether this session got the lock in time. */
async function took(
  client: ClientBase,
  how: 'pg_advisory_lock' | 'pg_advisory_lock_shared',
  key: string,
): Promise<boolean> {
  try {
    await client.query({ text: `select ${how}($1)`, values: [key], ...LOCK_ANSWER });
    return true;
  } catch (error) {
    if (error instanceof pg.DatabaseError && error.code === LOCK_NOT_AVAILABLE) return false;
    throw error;
  }
}

function inUse(databaseUrl: string, rival: 'alone' | 'shared', sharing: StoreSharing | undefined): DatabaseInUseError {
  const name = nameOf(databaseUrl);
  if (rival === 'shared') {
    const fix = 'give this one the same cluster, stop all of them, or give this one a database of its own';
    return new DatabaseInUseError(`databaseUrl: gateways of a cluster use ${name}`, fix);
  }
  if (sharing !== undefined) {
    const fix = 'stop that one, or name a cluster in its file, too';
    return new DatabaseInUseError(`databaseUrl: another gateway uses ${name}, which is in no cluster`, fix);
  }
  const fix = 'stop the other gateway, give this one a database of its own, or set standby: true to wait for its turn';
  return new DatabaseInUseError(`databaseUrl: another gateway uses ${name}`, fix);
}
