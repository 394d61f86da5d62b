import type { ClientBase } from 'pg';
import type { Logger } from '../../../lib/log.ts';

/** Not every hosted server lets its users ask: then that part is unknown. */
const SYSTEM = 'select system_identifier::text as answer from pg_control_system()';
/** A server has another timeline once it was promoted or restored. */
const TIMELINE = 'select substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) as answer';

/** Which server a gateway writes to: it logs when an address leads to another one. */
export class ServerIdentity {
  readonly #database: string;
  readonly #log: Logger;
  #last: string | undefined;

  constructor(database: string, log: Logger) {
    this.#database = database;
    this.#log = log;
  }

  /** Looks at the server of a new connection that may write. Never throws. */
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
