import type { Kysely } from 'kysely';
import type { ClientBase } from 'pg';
import { z } from 'zod';
import { PayboxError } from '../../../lib/errors.ts';
import { systemRandom } from '../../../lib/random.ts';
import type { Tables } from '../schema/tables.ts';

/** The setting with the id of the gateway run that holds the database. */
const HOLDER = 'holder';

/** A setting of a session: the `synchronous_commit` with which a commit waits for the disk and for standbys. */
export const DURABLE = 'paybox.durable';
/** With this, commits of a session no longer wait for the disk. */
export const COMMIT_IN_MEMORY = 'set synchronous_commit = off';
/**
 * A commit that waits for the disk brings all earlier commits of the server to the disk. It waits only if its
 * transaction has an id and has written to the log. Locking a row does both, and leaves nothing to clean up.
 */
const SYNC = `select value, set_config('synchronous_commit', current_setting('${DURABLE}'), true)
  from settings where name = $1 for key share`;

/** The routine in which PostgreSQL waits for a synchronous standby. It warns when the wait was cut short. */
const STANDBY_WAIT = 'SyncRepWaitForLSN';

const rowSchema = z.object({ value: z.string() });

/** Runs one query after the other on one connection. */
interface Queries {
  query(sql: string, parameters: readonly unknown[]): Promise<{ rows: unknown[] }>;
}

/**
 * Detects that another gateway has taken over the PostgreSQL database. Each run of a gateway writes its id into the
 * database, under the lock. A run that finds another id must end, even if it gets the lock again: its data in memory is
 * out of date.
 */
export class LockHolder {
  readonly #runId = systemRandom.uuid();
  readonly #database: string;
  readonly #superseded = Promise.withResolvers<PayboxError>();
  #registered = false;
  #error: PayboxError | undefined;
  /** The number of waits for a synchronous standby that somebody has cancelled. */
  #cancelledWaits = 0;

  constructor(database: string) {
    this.#database = database;
  }

  get registered(): boolean {
    return this.#registered;
  }

  /** Resolves with an error once another gateway has taken over the database. */
  get superseded(): Promise<PayboxError> {
    return this.#superseded.promise;
  }

  /** Throws once another gateway has taken over the database. */
  assertHolder(): void {
    if (this.#error !== undefined) throw this.#error;
  }

  /** Writes the id of this run. The connection of `db` must hold the lock. */
  async register(db: Kysely<Tables>): Promise<void> {
    const value = this.#runId;
    await db
      .insertInto('settings')
      .values({ name: HOLDER, value })
      .onConflict((it) => it.column('name').doUpdateSet({ value }))
      .execute();
    this.#registered = true;
  }

  /** Throws when the id of another run is in the database. */
  async check(client: Queries): Promise<void> {
    if (this.#registered) await this.#ask(client, 'select value from settings where name = $1');
  }

  /** Watches a connection. Must be called before `sync` uses it. */
  watch(client: ClientBase): void {
    client.on('notice', ({ routine }) => {
      if (routine === STANDBY_WAIT) this.#cancelledWaits += 1;
    });
  }

  /**
   * Waits until the disk has everything that this server has committed while the connection of `client` was open.
   * Throws when the id of another run is in the database. Throws when somebody cancelled the wait for a synchronous
   * standby: PostgreSQL then reports success with a warning, although only the primary has the commits. Must be called
   * only by a registered run.
   */
  async sync(client: Queries): Promise<void> {
    const before = this.#cancelledWaits;
    await this.#ask(client, SYNC);
    if (this.#cancelledWaits === before) return;
    const what = 'the wait for the synchronous standby was cancelled: it may lack this change';
    const fix = 'do not cancel statements of the gateway; check the standby';
    throw new PayboxError('STORAGE_FAULT', what, { severity: 'retryable', fix });
  }

  /** Records that another run holds the lock. */
  supersede(): PayboxError {
    const what = `another gateway has taken over ${this.#database} while this one did not answer`;
    const fix =
      'this one has written nothing since; start it again, with standby: true to wait for its turn, unless it is in a cluster';
    this.#error ??= new PayboxError('STORAGE_FAULT', `${what}: ${fix}`, { severity: 'fatal', fix });
    this.#superseded.resolve(this.#error);
    return this.#error;
  }

  async #ask(client: Queries, sql: string): Promise<void> {
    const { rows } = await client.query(sql, [HOLDER]);
    if (rowSchema.safeParse(rows[0]).data?.value !== this.#runId) throw this.supersede();
  }
}
