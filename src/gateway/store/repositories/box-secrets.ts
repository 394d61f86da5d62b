import type { Kysely } from 'kysely';
import type { BoxSecretRow, Tables } from '../schema/tables.ts';

/** The secrets that were agreed at enrolment, one for each box; known without a query, as every login asks for one. */
export class BoxSecretStore {
  readonly #db: Kysely<Tables>;
  readonly #rows: Map<string, BoxSecretRow>;

  private constructor(db: Kysely<Tables>, rows: readonly BoxSecretRow[]) {
    this.#db = db;
    this.#rows = new Map(rows.map((row) => [row.terminal_code, row]));
  }

  static async open(db: Kysely<Tables>): Promise<BoxSecretStore> {
    return new BoxSecretStore(db, await db.selectFrom('box_secrets').selectAll().execute());
  }

  /** The secret of this very box; one that took its terminalCode over has none. */
  get(terminalCode: string, serialNumber: string): string | undefined {
    const row = this.#rows.get(terminalCode);
    return row?.serial_number === serialNumber ? row.secret : undefined;
  }

  /** Takes the place of an older one; known once it is on the disk. */
  async keep(row: BoxSecretRow): Promise<void> {
    const { terminal_code: terminalCode, ...rest } = row;
    await this.#db
      .insertInto('box_secrets')
      .values(row)
      .onConflict((it) => it.column('terminal_code').doUpdateSet(rest))
      .execute();
    this.#rows.set(terminalCode, row);
  }

  async forget(terminalCode: string): Promise<void> {
    await this.#db.deleteFrom('box_secrets').where('terminal_code', '=', terminalCode).execute();
    this.#rows.delete(terminalCode);
  }
}
