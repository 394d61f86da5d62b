import { type Kysely, sql } from 'kysely';
import type { AdminTokenRow, AuditRow, Tables } from '../schema/tables.ts';
import { noteChange } from './audit.ts';

/** Tokens that are not revoked. One more is refused. */
export const ADMIN_TOKENS_MAX = 500;
/** Revoked tokens that are listed. Beyond that, the one that was revoked first is deleted. */
const REVOKED_MAX = 500;

type Change = Omit<AuditRow, 'seq'>;

/** Tokens of admins, cashiers and viewers; only their digests. Each change is stored together with its line in the audit list. */
export class AdminTokenStore {
  readonly #db: Kysely<Tables>;

  constructor(db: Kysely<Tables>) {
    this.#db = db;
  }

  /** Finds the token with this digest, if it is not revoked. */
  find(digest: string): Promise<AdminTokenRow | undefined> {
    const tokens = this.#db.selectFrom('admin_tokens').selectAll().where('digest', '=', digest);
    return tokens.where('revoked_at_ms', 'is', null).executeTakeFirst();
  }

  /** Lists the tokens that are in use, or those that are revoked, in the order of their names. */
  list(isRevoked: boolean): Promise<AdminTokenRow[]> {
    const tokens = this.#db.selectFrom('admin_tokens').selectAll();
    return tokens
      .where('revoked_at_ms', isRevoked ? 'is not' : 'is', null)
      .orderBy('name')
      .orderBy('created_at_ms')
      .execute();
  }

  /** Adds a token. Returns why it cannot, and then adds nothing. */
  add(row: AdminTokenRow, change: Change): Promise<'added' | 'name taken' | 'too many'> {
    return this.#db.transaction().execute(async (trx) => {
      const inUse = trx.selectFrom('admin_tokens').select(({ fn }) => fn.countAll<number | string>().as('count'));
      const { count } = await inUse.where('revoked_at_ms', 'is', null).executeTakeFirstOrThrow();
      if (Number(count) >= ADMIN_TOKENS_MAX) return 'too many';
      const added = trx.insertInto('admin_tokens').values(row);
      const rows = await added
        .onConflict((it) => it.doNothing())
        .returning('id')
        .execute();
      if (rows.length === 0) return 'name taken';
      await noteChange(trx, change);
      return 'added';
    });
  }

  /** Revokes the token of this name. Returns false if there is none. */
  revoke(name: string, atMs: number, change: Change): Promise<boolean> {
    return this.#db.transaction().execute(async (trx) => {
      const revoked = trx.updateTable('admin_tokens').set({ revoked_at_ms: atMs }).where('name', '=', name);
      const rows = await revoked.where('revoked_at_ms', 'is', null).returning('id').execute();
      if (rows.length === 0) return false;
      const newest = sql<string>`(select id from ${sql.table('admin_tokens')} where revoked_at_ms is not null
        order by revoked_at_ms desc, id limit ${REVOKED_MAX})`;
      const old = trx.deleteFrom('admin_tokens').where('revoked_at_ms', 'is not', null);
      await old.where('id', 'not in', newest).execute();
      await noteChange(trx, change);
      return true;
    });
  }

  /** Stores when a token was used; nothing if the store knows of a use since `sinceMs`. */
  async used(id: string, atMs: number, sinceMs: number): Promise<void> {
    const token = this.#db.updateTable('admin_tokens').set({ last_used_at_ms: atMs }).where('id', '=', id);
    await token
      .where((it) => it.or([it('last_used_at_ms', 'is', null), it('last_used_at_ms', '<', sinceMs)]))
      .execute();
  }
}
