import type { ClientBase } from 'pg';
import type { Logger } from '../../../lib/log.ts';

/** Not every hosted server lets its users ask this. Then that part is unknown. */
const SYSTEM = 'select system_identifier::text as answer from pg_control_system()';
/** A server gets another timeline when it is promoted or restored. */
const TIMELINE = 'select substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) as answer';

/** Remembers which server a gateway writes to. Logs when the address leads to another one. */
export class ServerIdentity {
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
