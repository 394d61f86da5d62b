import type { Kysely } from 'kysely';
import type { EnrolmentRequestRow, Tables } from '../schema/tables.ts';

/** Who proved which code, so that another start knows it (PROTOCOL.md, clause ENR-7). */
export class EnrolmentRequestStore {
  readonly #db: Kysely<Tables>;

  constructor(db: Kysely<Tables>) {
    this.#db = db;
  }

  /** The oldest first. */
  all(): Promise<EnrolmentRequestRow[]> {
    return this.#db.selectFrom('enrolment_requests').selectAll().orderBy('asked_at_ms').orderBy('id').execute();
  }

  /** Settles once it is on the disk; those asked before `sinceMs`, in calendar time, go. */
  async keep(row: EnrolmentRequestRow, sinceMs: number): Promise<void> {
    await this.#db.transaction().execute(async (trx) => {
      await trx.deleteFrom('enrolment_requests').where('asked_at_ms', '<', sinceMs).execute();
      await trx.insertInto('enrolment_requests').values(row).execute();
    });
  }
}
