import type { ClientBase } from 'pg';
import { PayboxError } from '../../../lib/errors.ts';

/** The server process of a connection. The start time is needed because the system reuses a pid. */
export interface BackendProcess {
  pid: number;
  since: string;
}

/** This text is the same in every session, whatever its time zone and date style are. */
const SINCE = 'extract(epoch from backend_start)::text';
const SELF = `select pid, ${SINCE} as since from pg_stat_activity where pid = pg_backend_pid()`;
/** Ends the listed sessions that the server still has. A hanging process ends as soon as it runs again. */
const END = `select pid, ${SINCE} as since, pg_terminate_backend(pid) from pg_stat_activity
  where (pid, ${SINCE}) in (select * from unnest($1::int[], $2::text[]))`;
/** The sessions that hold an advisory lock. */
const HOLDERS = `select pid, ${SINCE} as since, mode = 'ShareLock' as "isShared" from pg_locks join pg_stat_activity using (pid)
  where locktype = 'advisory' and granted and ((classid::bigint << 32) | objid::bigint) = $1::bigint
    and database = (select oid from pg_database where datname = current_database())`;

/** A session that holds an advisory lock, alone or together with others. */
interface LockSession extends BackendProcess {
  isShared: boolean;
}

/** The newest sessions are remembered, at most this many. */
const SESSIONS_MAX = 100;

/**
 * Remembers the sessions that this run of a gateway has, or once had, with a database. The server keeps a session and
 * its lock when its process hangs, or when its connection was lost unnoticed. Such a session is not another gateway:
 * this run ends it, and waits.
 */
export class OwnSessions {
  #known: readonly BackendProcess[] = [];

  /**
   * Records the session of a new connection, before it asks for a lock. Ends all earlier sessions that this server has.
   * After a failover, the address may lead back to a server that has older ones.
   */
  async begin(client: ClientBase): Promise<void> {
    const self = (await client.query<BackendProcess>(SELF)).rows;
    const lists = [this.#known.map(({ pid }) => pid), this.#known.map(({ since }) => since)];
    // The session is recorded before the others are ended. From now on it may hang, and block the next one.
    this.#known = [...this.#known, ...self].slice(-SESSIONS_MAX);
    await client.query(END, lists);
  }

  /** Throws when this connection leads to another server than the newest session. */
  async assertSameServer(client: ClientBase): Promise<void> {
    const { pid, since } = this.#known.at(-1) ?? {};
    const there = `select 1 from pg_stat_activity where pid = $1 and ${SINCE} = $2`;
    if ((await client.query(there, [pid, since])).rows.length > 0) return;
    throw new Error('the address leads to another server than the one that the gateway writes to');
  }

  /** Returns how others hold this advisory lock. Undefined if nobody else does. */
  async rival(client: ClientBase, lockKey: string): Promise<'alone' | 'shared' | undefined> {
    const others = (await this.#holders(client, lockKey)).filter((holder) => !this.#has(holder));
    if (others.length === 0) return undefined;
    return others.some(({ isShared }) => !isShared) ? 'alone' : 'shared';
  }

  /** Returns the error of a lock that nobody else keeps from this gateway. */
  async unended(client: ClientBase, lockKey: string): Promise<PayboxError> {
    const [own] = (await this.#holders(client, lockKey)).filter((holder) => this.#has(holder));
    const who = own === undefined ? '' : `: its process ${own.pid} at the server does not answer`;
    return new PayboxError('STORAGE_FAULT', `an earlier database session of this gateway has not ended yet${who}`, {
      severity: 'retryable',
      fix: 'check the database server; the gateway continues by itself once that session has ended',
    });
  }

  async #holders(client: ClientBase, lockKey: string): Promise<LockSession[]> {
    return (await client.query<LockSession>(HOLDERS, [lockKey])).rows;
  }

  #has({ pid, since }: BackendProcess): boolean {
    return this.#known.some((it) => it.pid === pid && it.since === since);
  }
}
