import type { Kysely } from 'kysely';
import type { ClientBase } from 'pg';
import { PayboxError } from '../../../lib/errors.ts';
import { systemRandom } from '../../../lib/random.ts';
import type { Tables } from '../schema/tables.ts';

/** The setting that names the run of a gateway that has the database. */
const HOLDER = 'holder';

/**
 * The time for which one run of a gateway has a PostgreSQL database. It begins under the lock, with this run's name in
 * the database, and is over once another name stands there: what this run knows by heart is then out of date, also where
 * it could have the lock again.
 */
export class LockHolder {
  readonly #run = systemRandom.uuid();
  readonly #database: string;
  readonly #over = Promise.withResolvers<PayboxError>();
  #begun = false;
  #error: PayboxError | undefined;

  constructor(database: string) {
    this.#database = database;
  }

  get begun(): boolean {
    return this.#begun;
  }

  /** Settles, with what to tell, once another gateway has the database. */
  get over(): Promise<PayboxError> {
    return this.#over.promise;
  }

  /** Throws for a run whose time is over. */
  assertOwn(): void {
    if (this.#error !== undefined) throw this.#error;
  }

  /** To be called with a database whose connection has the lock. */
  async begin(db: Kysely<Tables>): Promise<void> {
    const value = this.#run;
    await db
      .insertInto('settings')
      .values({ name: HOLDER, value })
      .onConflict((it) => it.column('name').doUpdateSet({ value }))
      .execute();
    this.#begun = true;
  }

  /** Ends the time of this run where another name stands in the database; throws then. */
  async check(client: ClientBase): Promise<void> {
    if (!this.#begun) return;
    const { rows } = await client.query<{ value: string }>('select value from settings where name = $1', [HOLDER]);
    if (rows[0]?.value !== this.#run) throw this.end();
  }

  /** Ends the time of this run: another has the lock. */
  end(): PayboxError {
    const what = `another gateway has taken over ${this.#database} while this one did not answer`;
    const fix = 'this one has written nothing since; start it again, with standby: true to wait for its turn';
    this.#error ??= new PayboxError('STORAGE_FAULT', `${what}: ${fix}`, { severity: 'fatal', fix });
    this.#over.resolve(this.#error);
    return this.#error;
  }
}
