import type { Kysely } from 'kysely';
import type { ClientBase } from 'pg';
import { PayboxError } from '../../lib/errors.ts';
import { systemRandom } from '../../lib/random.ts';
import type { Tables } from '../schema/tables.ts';

/** Setting with the id of the gateway run that has the database. */
const HOLDER = 'holder';

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

  /** Writes this run's id; the connection of `db` must have the lock. */
  async register(db: Kysely<Tables>): Promise<void> {
    const value = this.#runId;
    await db
      .insertInto('settings')
      .values({ name: HOLDER, value })
      .onConflict((it) => it.column('name').doUpdateSet({ value }))
      .execute();
    this.#registered = true;
  }

  /** Throws when another run's id is in the database. */
  async check(client: ClientBase): Promise<void> {
    if (!this.#registered) return;
    const { rows } = await client.query<{ value: string }>('select value from settings where name = $1', [HOLDER]);
    if (rows[0]?.value !== this.#runId) throw this.supersede();
  }

  /** Records that another run has the lock. */
  supersede(): PayboxError {
    const what = `another gateway has taken over ${this.#database} while this one did not answer`;
    const fix = 'this one has written nothing since; start it again, with standby: true to wait for its turn';
    this.#error ??= new PayboxError('STORAGE_FAULT', `${what}: ${fix}`, { severity: 'fatal', fix });
    this.#superseded.resolve(this.#error);
    return this.#error;
  }
}
