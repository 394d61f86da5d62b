import pg from 'pg';
import { systemClock, withDeadline } from '../../lib/clock.ts';
import type { HostResolver } from '../../lib/resolver.ts';
import { NamedSockets } from '../store/engines/named-socket.ts';
import { sessionUrl } from '../store/engines/postgres-session.ts';

const CONNECT_TIMEOUT_MS = 2_000;
const ANSWER_TIMEOUT_MS = 2_000;
/**
 * The server cancels a statement before this gateway stops waiting for it. Nobody would read a later answer, and the
 * statement would keep its session busy.
 */
const STATEMENT_TIMEOUT_MS = 1_800;
/** The server has this long to end the session. After that, the session is abandoned. */
const CLOSE_WAIT_MS = 300;
/** At most this many queries wait for their turn. One more is refused. */
const WAITING_MAX = 500;

export interface DatabaseSessionDeps {
  databaseUrl: string;
  names: HostResolver;
  /** The name of the session in `pg_stat_activity`. */
  application: string;
  /** Sent on each new connection, before any query. */
  greeting?: string;
  onNotification?(text: string): void;
  /** Called on each new connection, after the greeting. */
  onOpened?(): void;
  /** Called when a connection that was open is lost. */
  onLost?(): void;
}

/** Holds one connection of a gateway to PostgreSQL. Queries run one after the other. A lost connection is reopened. */
export class DatabaseSession {
  readonly #deps: DatabaseSessionDeps;
  readonly #sockets: NamedSockets;
  #client: pg.Client | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  constructor(deps: DatabaseSessionDeps) {
    this.#deps = deps;
    this.#sockets = new NamedSockets(deps.names);
  }

  /** Rejects with the error of the driver, or when too many queries wait. */
  async query<Row extends pg.QueryResultRow>(sql: string, values?: unknown[]): Promise<pg.QueryResult<Row>> {
    if (this.#waiting >= WAITING_MAX) throw new Error(`${WAITING_MAX} queries wait for ${this.#deps.application}`);
    this.#waiting += 1;
    const asked = this.#last.then(async () => {
      const client = await this.#open();
      try {
        return await client.query<Row>(sql, values);
      } catch (error) {
        // A statement that the server refuses does not break the connection.
        if (!(error instanceof pg.DatabaseError)) this.#lose(client);
        throw error;
      }
    });
    this.#last = asked.catch(() => undefined);
    return asked.finally(() => {
      this.#waiting -= 1;
    });
  }

  async close(): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    if (client !== undefined)
      await withDeadline(
        systemClock,
        CLOSE_WAIT_MS,
        client.end().catch(() => undefined),
      );
    this.#sockets.abandon();
  }

  async #open(): Promise<pg.Client> {
    if (this.#client !== undefined) return this.#client;
    const { databaseUrl, application, greeting, onNotification, onOpened } = this.#deps;
    const client = new pg.Client({
      connectionString: sessionUrl(databaseUrl),
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      query_timeout: ANSWER_TIMEOUT_MS,
      statement_timeout: STATEMENT_TIMEOUT_MS,
      keepAlive: true,
      stream: () => this.#sockets.make(),
      application_name: application,
    });
    client.on('error', () => this.#lose(client));
    client.on('end', () => this.#lose(client));
    client.on('notification', ({ payload = '' }) => onNotification?.(payload));
    try {
      await client.connect();
      if (greeting !== undefined) await client.query(greeting);
    } catch (error) {
      // Otherwise each failed attempt would leave a connection open. A standby refuses the greeting, for example.
      this.#lose(client);
      throw error;
    }
    this.#client = client;
    onOpened?.();
    return client;
  }

  #lose(client: pg.Client): void {
    const wasOpen = this.#client === client;
    if (wasOpen) this.#client = undefined;
    void client.end().catch(() => undefined);
    if (wasOpen) this.#deps.onLost?.();
  }
}
