import { type Kysely, sql } from 'kysely';
import type { Tables } from '../schema/tables.ts';

/** Digests that are kept; the oldest goes. */
export const KNOWN_LOGINS_MAX = 10_000;

/** Digests of who has logged in from where (PROTOCOL.md, clause TOK-6). */
export class KnownLoginStore {
  readonly #db: Kysely<Tables>;

  constructor(db: Kysely<Tables>) {
    this.#db = db;
  }

  /** The oldest first. */
  async all(): Promise<string[]> {
    const rows = await this.#db.selectFrom('known_logins').select('digest').orderBy('seq').execute();
    return rows.map(({ digest }) => digest);
  }

  /** As the newest, all of them or none. One that is there becomes a newest. */
  async add(digests: readonly string[]): Promise<void> {
    await this.#db.transaction().execute(async (trx) => {
      const newest = await trx
        .selectFrom('known_logins')
        .select(sql<number>`coalesce(max(seq), 0)`.as('seq'))
        .executeTakeFirstOrThrow();
      let { seq } = newest;
      // One at a time: a statement for each number of rows would fill the place of those that are kept prepared.
      for (const digest of digests) {
        seq += 1;
        await trx
          .insertInto('known_logins')
          .values({ digest, seq })
          .onConflict((it) => it.column('digest').doUpdateSet({ seq }))
          .execute();
      }
      await trx
        .deleteFrom('known_logins')
        .where('seq', '<=', seq - KNOWN_LOGINS_MAX)
        .execute();
    });
  }
}
