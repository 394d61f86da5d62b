import { type Kysely, sql } from 'kysely';
import type { BoxSecretRow, Tables } from '../schema/tables.ts';
import { transact } from '../transact.ts';
import { nextSeq } from './seq.ts';

/** At most this many digests of known logins are stored. Beyond that, the oldest is deleted. */
export const KNOWN_LOGINS_MAX = 10_000;

/** Stores the secrets that boxes agreed on at enrolment, one per box. The caller must encrypt them. */
export class BoxSecretStore {
  readonly #db: Kysely<Tables>;

  constructor(db: Kysely<Tables>) {
    this.#db = db;
  }

  /** Returns the secret of this box. A box with another serialNumber has none, even under the same terminalCode. */
  async get(terminalCode: string, serialNumber: string): Promise<string | undefined> {
    const rows = this.#db.selectFrom('box_secrets').select('secret').where('terminal_code', '=', terminalCode);
    return (await rows.where('serial_number', '=', serialNumber).executeTakeFirst())?.secret;
  }

  /** Stores a secret in place of an older one. The secret is valid once it is durable. */
  keep(row: BoxSecretRow): Promise<void> {
    return keepBoxSecret(this.#db, row);
  }

  /** Returns secrets of an earlier version, which are not encrypted. */
  plain(limit: number): Promise<BoxSecretRow[]> {
    // This is a literal, because with a parameter SQLite does not use the index.
    const rows = this.#db.selectFrom('box_secrets').selectAll().where('wrapped', '=', sql.lit(0));
    return rows.orderBy('terminal_code').limit(limit).execute();
  }

  async forget(terminalCode: string): Promise<void> {
    await this.#db.deleteFrom('box_secrets').where('terminal_code', '=', terminalCode).execute();
  }
}

/** Stores digests of users and the addresses from which they have logged in (PROTOCOL.md, clause TOK-6). */
export class KnownLoginStore {
  readonly #db: Kysely<Tables>;
  readonly #early: Kysely<Tables>;

  /** `early`: for reads of which nobody learns. */
  constructor(db: Kysely<Tables>, early = db) {
    this.#db = db;
    this.#early = early;
  }

  /** Returns all digests, oldest first. */
  async all(): Promise<string[]> {
    return (await this.since(0)).map(({ digest }) => digest);
  }

  /** Returns the digests that were added after this `seq`, oldest first. */
  since(seq: number): Promise<{ digest: string; seq: number }[]> {
    return this.#early.selectFrom('known_logins').selectAll().where('seq', '>', seq).orderBy('seq').execute();
  }

  /** Adds digests as the newest, all or none. A known digest becomes new again. */
  async add(digests: readonly string[]): Promise<void> {
    await transact(this.#db, async (trx) => {
      let newest = 0;
      // Each statement adds one row. Every other number of rows would be another prepared statement.
      for (const digest of digests) {
        const seq = nextSeq(trx, 'known_logins');
        const added = await trx
          .insertInto('known_logins')
          .values({ digest, seq })
          .onConflict((it) => it.column('digest').doUpdateSet({ seq }))
          .returning('seq')
          .executeTakeFirstOrThrow();
        newest = added.seq;
      }
      await trx
        .deleteFrom('known_logins')
        .where('seq', '<=', newest - KNOWN_LOGINS_MAX)
        .execute();
    });
  }
}

/** Stores a secret in place of an older one, in the caller's transaction. */
export async function keepBoxSecret(db: Kysely<Tables>, row: BoxSecretRow): Promise<void> {
  const { terminal_code: _key, ...rest } = row;
  await db
    .insertInto('box_secrets')
    .values(row)
    .onConflict((it) => it.column('terminal_code').doUpdateSet(rest))
    .execute();
}
