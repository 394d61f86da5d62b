import { type Kysely, sql } from 'kysely';
import type { ClientBase } from 'pg';
import { z } from 'zod';
import { PayboxError } from '../../../lib/errors.ts';
import { systemRandom } from '../../../lib/random.ts';
import type { Tables } from '../schema/tables.ts';
import { repeated } from '../transact.ts';
import type { StoreSharing } from './store-sharing.ts';

/** The setting with the id of the gateway run that holds the database, or that was the last to share it. */
const HOLDER = 'holder';
/** The row of the settings at a gateway alone, and the one of a run that shares the database. */
const ROW = 'from settings where name = $1';
const SHARED_ROW = 'from cluster.gateways where run = $1 and not gone';

/** A setting of a session: the `synchronous_commit` with which a commit waits for the disk and for standbys. */
export const DURABLE = 'paybox.durable';
/**
 * With this, commits of a session no longer wait for the disk, and transactions of several gateways have the effect of
 * one after the other, or one of them is undone and must be repeated.
 */
export const COMMIT_IN_MEMORY = "set synchronous_commit = off; set default_transaction_isolation = 'serializable'";
/**
 * A commit that waits for the disk brings all earlier commits of the server to the disk. It waits only if its
 * transaction has an id and has written to the log. Locking a row does both, and leaves nothing to clean up.
 */
const SYNC = `set_config('synchronous_commit', current_setting('${DURABLE}'), true)`;
/** A standby may lack what the disk of the primary has. */
const ON_DISK = `pg_current_wal_flush_lsn() >= pg_current_wal_insert_lsn()
  and current_setting('synchronous_standby_names') = ''`;

/** The routine in which PostgreSQL waits for a synchronous standby. It warns when the wait was cut short. */
const STANDBY_WAIT = 'SyncRepWaitForLSN';

const rowSchema = z.object({ value: z.string() });

/** Runs one query after the other on one connection. */
interface Queries {
  query(sql: string, parameters: readonly unknown[]): Promise<{ rows: unknown[] }>;
}

/**
 * Detects that another gateway has taken over the PostgreSQL database, or the work of this run. Each run of a gateway
 * alone writes its id into the database, under the lock. A run that finds another id must end, even if it gets the lock
 * again: its data in memory is out of date. A run that shares the database has a row in `cluster.gateways`, which others
 * mark as gone before they end its sessions and take its work. Without that row it must end, too.
 */
export class LockHolder {
  readonly #runId: string;
  readonly #isSharing: boolean;
  readonly #database: string;
  readonly #superseded = Promise.withResolvers<PayboxError>();
  #registered = false;
  #error: PayboxError | undefined;
  /** The number of waits for a synchronous standby that somebody has cancelled. */
  #cancelledWaits = 0;

  constructor(database: string, sharing: Pick<StoreSharing, 'run'> | undefined) {
    this.#database = database;
    this.#isSharing = sharing !== undefined;
    this.#runId = sharing?.run ?? systemRandom.uuid();
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
    // A run that shares the database writes it, too: a gateway alone that was frozen meanwhile must end.
    await db
      .insertInto('settings')
      .values({ name: HOLDER, value })
      .onConflict((it) => it.column('name').doUpdateSet({ value }))
      .execute();
    if (!this.#isSharing) await forgetSharing(db);
    this.#registered = true;
  }

  /** Throws when this run is not the one that the database names. A gateway alone is named once it is registered. */
  async check(client: Queries): Promise<void> {
    if (this.#registered || this.#isSharing) await this.#ask(client, '', '');
  }

  /** Watches a connection. Must be called before `sync` uses it. */
  watch(client: ClientBase): void {
    client.on('notice', ({ routine }) => {
      if (routine === STANDBY_WAIT) this.#cancelledWaits += 1;
    });
  }

  /**
   * Waits until the disk has everything that this server has committed while the connection of `client` was open.
   * Without `hasWritten` the disk probably has it already, and the database is asked in the same statement. Throws when
   * this run is not the one that the database names. Throws when somebody cancelled the wait for a synchronous standby:
   * PostgreSQL then reports success with a warning, although only the primary has the commits. Must be called only by a
   * registered run.
   */
  async sync(client: Queries, hasWritten = true): Promise<void> {
    const before = this.#cancelledWaits;
    await repeated(() =>
      hasWritten ? this.#ask(client, `, ${SYNC}`, 'for key share') : this.#askUnlessOnDisk(client),
    );
    if (this.#cancelledWaits === before) return;
    const what = 'the wait for the synchronous standby was cancelled: it may lack this change';
    const fix = 'do not cancel statements of the gateway; check the standby';
    throw new PayboxError('STORAGE_FAULT', what, { severity: 'retryable', fix });
  }

  /** Records that another run holds the lock, or has taken the work of this one. */
  supersede(): PayboxError {
    const what = this.#isSharing
      ? `other gateways of ${this.#database} have taken over the work of this one while it did not answer`
      : `another gateway has taken over ${this.#database} while this one did not answer`;
    const next = this.#isSharing
      ? 'it begins again by itself'
      : 'start it again, with standby: true to wait for its turn';
    const fix = `this one has written nothing since; ${next}`;
    this.#error ??= new PayboxError('STORAGE_FAULT', `${what}: ${fix}`, { severity: 'fatal', fix });
    this.#superseded.resolve(this.#error);
    return this.#error;
  }

  async #ask(client: Queries, columns: string, lock: string): Promise<void> {
    const { rows } = this.#isSharing
      ? await client.query(`select run as value ${columns} ${SHARED_ROW} ${lock}`, [this.#runId])
      : await client.query(`select value ${columns} ${ROW} ${lock}`, [HOLDER]);
    this.#assertOwn(rows);
  }

  /** Waits only if something is not on the disk. A run that shares the database may have seen commits of others. */
  async #askUnlessOnDisk(client: Queries): Promise<void> {
    const waits = `select run, ${SYNC} ${SHARED_ROW} and not (${ON_DISK}) for key share`;
    const asked = `with waits as (${waits}) select run as value, (select count(*) from waits) ${SHARED_ROW}`;
    this.#assertOwn((await client.query(asked, [this.#runId])).rows);
  }

  #assertOwn(rows: readonly unknown[]): void {
    if (rowSchema.safeParse(rows[0]).data?.value !== this.#runId) throw this.supersede();
  }
}

/** Deletes the runs that have shared this database: one that was frozen meanwhile must end. Nobody shares it now. */
async function forgetSharing(db: Kysely<Tables>): Promise<void> {
  const table = await sql<{ name: string | null }>`select to_regclass('cluster.gateways')::text as name`.execute(db);
  if (table.rows[0]?.name != null) await sql`delete from cluster.gateways`.execute(db);
}
