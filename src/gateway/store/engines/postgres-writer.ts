import type { Socket } from 'node:net';
import type { PostgresPoolClient } from 'kysely';
import pg, { type ClientBase, type ClientConfig, type PoolClient } from 'pg';
import { PayboxError, reasonOf } from '../../../lib/errors.ts';
import type { Logger } from '../../../lib/log.ts';
import type { LedgerGuard } from '../integrity/ledger-guard.ts';
import type { LockHolder } from './lock-holder.ts';
import type { NamedSockets } from './named-socket.ts';
import { queriesOver } from './postgres-session.ts';

interface Deps {
  /** The name of the database in the log. */
  name: string;
  config: ClientConfig;
  sockets: NamedSockets;
  holder: LockHolder;
  guard: LedgerGuard;
  log: Logger;
  /** Aborted when the store closes. */
  closing: AbortSignal;
  /** Takes the lock on a new connection. */
  begin(client: ClientBase): Promise<void>;
  /** Called when the connection was lost while nobody used it. */
  lost(): void;
}

/** The driver's error for a caller who has waited too long for a turn. It says nothing about the server. */
const WAITED_TOO_LONG = 'timeout exceeded when trying to connect';

/** Holds the writing connection of a gateway. It is used in turns, and reopened when it was lost. */
export class WriterConnection {
  readonly #deps: Deps;
  readonly #pool: pg.Pool;
  #isThere = true;

  constructor(deps: Deps) {
    const { name, config, sockets, log, begin, lost } = deps;
    this.#deps = deps;
    let socket: Socket | undefined;
    const stream = () => {
      socket = sockets.make();
      return socket;
    };
    const onConnect = (client: ClientBase) => {
      const dialled = socket;
      return begin(client).catch((error: unknown) => {
        // The pool waits until the server has closed the connection. A server that hangs never does.
        dialled?.destroy();
        throw error;
      });
    };
    // The pool must not close an idle connection, because that would release the lock.
    this.#pool = new pg.Pool({ ...config, stream, max: 1, idleTimeoutMillis: 0, onConnect });
    // Without a listener, an error of the idle connection would end the process. The next query throws it too.
    this.#pool.on('error', (error) => {
      log.warn('database-lost', { database: name, reason: reasonOf(error) });
      lost();
    });
    this.#pool.on('connect', (client) => client.on('error', () => undefined));
  }

  /** Returns whether somebody waits for a turn. */
  get isBusy(): boolean {
    return this.#pool.waitingCount > 0;
  }

  /** Settles with the connection, which the caller releases. Rejects while the database lacks payments. */
  async connect(): Promise<PostgresPoolClient> {
    const { guard } = this.#deps;
    guard.assertWhole();
    const client = await this.#open();
    // If the connection is new, its check may have found that payments are missing.
    if (guard.isRefusing) client.release();
    guard.assertWhole();
    return client;
  }

  async #open(): Promise<PostgresPoolClient> {
    const { name, holder, log, closing } = this.#deps;
    try {
      const client = closedWhenBroken(await this.#pool.connect());
      if (!this.#isThere) log.info('database-recovered', { database: name });
      this.#isThere = true;
      return client;
    } catch (error) {
      holder.assertHolder();
      const reason = reasonOf(error);
      if (this.#isThere && holder.registered && !closing.aborted && reason !== WAITED_TOO_LONG) {
        this.#isThere = false;
        log.warn('database-unreachable', { database: name, reason });
      }
      throw reason === WAITED_TOO_LONG ? silent(error) : error;
    }
  }

  /** Runs `work` with the connection, in its own turn. */
  async use(work: (client: PostgresPoolClient) => Promise<unknown>): Promise<void> {
    const client = await this.connect();
    await work(client).finally(() => client.release());
  }

  /** Checks whether a database that lacked payments has them again. If so, the connection is reopened. */
  async lookAgain(): Promise<void> {
    const client = await this.#pool.connect();
    let isAnother = true;
    try {
      isAnother = await this.#deps.guard.check(queriesOver(client), true);
    } finally {
      client.release(isAnother);
    }
  }

  /** Looks for payments that other gateways have missed. */
  async hearOthers(): Promise<void> {
    const client = await this.#pool.connect();
    let isBroken = true;
    try {
      await this.#deps.guard.hear(queriesOver(client));
      isBroken = false;
    } finally {
      client.release(isBroken);
    }
  }

  end(): Promise<void> {
    return this.#pool.end();
  }
}

function silent(cause: unknown): PayboxError {
  const what = 'the database does not answer the queries before this one';
  return new PayboxError('STORAGE_FAULT', what, { severity: 'retryable', fix: 'check the database server', cause });
}

/** Closes a connection after a query that the server did not answer, instead of reusing it. */
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
