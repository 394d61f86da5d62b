import { type Kysely, sql } from 'kysely';
import type { AdminTokenRow, ChangedBy, NewAudit, Tables } from '../schema/tables.ts';
import { transact } from '../transact.ts';
import { AUDIT_ROWS_MAX, noteChange } from './audit.ts';

/** At most this many tokens are in use. One more is refused. */
export const ADMIN_TOKENS_MAX = 500;
/** At most this many revoked tokens are listed, the newest. */
const REVOKED_LISTED_MAX = 500;
/**
 * At most this many revoked tokens are kept for their names: as many as the audit list has lines. So a name is free
 * again only when no line has it any more.
 */
const REVOKED_MAX = AUDIT_ROWS_MAX;

/** Stores the digests of tokens. Each change is stored together with its line in the audit list. */
export class AdminTokenStore {
  readonly #db: Kysely<Tables>;

  constructor(db: Kysely<Tables>) {
    this.#db = db;
  }

  /** Returns the token with this digest, if it is not revoked. */
  find(digest: string): Promise<AdminTokenRow | undefined> {
    const tokens = this.#db.selectFrom('admin_tokens').selectAll().where('digest', '=', digest);
    return tokens.where('revoked_at_ms', 'is', null).executeTakeFirst();
  }

  /** Lists the tokens that are in use, or the newest revoked ones, in the order of their names. */
  list(isRevoked: boolean): Promise<AdminTokenRow[]> {
    const inUse = this.#db.selectFrom('admin_tokens').selectAll().where('revoked_at_ms', 'is', null);
    const revoked = this.#db.selectFrom('admin_tokens').selectAll().where('revoked_at_ms', 'is not', null);
    const newest = revoked.orderBy('revoked_at_ms', 'desc').orderBy('id').limit(REVOKED_LISTED_MAX);
    const listed = this.#db.selectFrom((isRevoked ? newest : inUse).as('listed')).selectAll();
    return listed.orderBy('name').orderBy('created_at_ms').execute();
  }

  /**
   * Adds a token. If it cannot, it adds nothing and returns why: another token has its name, or had it before it was
   * revoked. Names are compared without upper and lower case.
   */
  add(row: AdminTokenRow, change: NewAudit): Promise<'added' | 'name taken' | 'name spent' | 'too many'> {
    return transact(this.#db, async (trx) => {
      const inUse = trx.selectFrom('admin_tokens').select(({ fn }) => fn.countAll<number | string>().as('count'));
      const { count } = await inUse.where('revoked_at_ms', 'is', null).executeTakeFirstOrThrow();
      if (Number(count) >= ADMIN_TOKENS_MAX) return 'too many';
      const named = trx.selectFrom('admin_tokens').select('revoked_at_ms');
      const same = await named.where(sql`lower("name")`, '=', row.name.toLowerCase()).execute();
      if (same.length > 0) return same.some((it) => it.revoked_at_ms === null) ? 'name taken' : 'name spent';
      await trx.insertInto('admin_tokens').values(row).execute();
      await noteChange(trx, change);
      return 'added';
    });
  }

  /** Revokes the token of this name. Returns false if there is none. */
  revoke(name: string, atMs: number, change: NewAudit): Promise<boolean> {
    return transact(this.#db, async (trx) => {
      const revoked = trx.updateTable('admin_tokens').set({ revoked_at_ms: atMs }).where('name', '=', name);
      const rows = await revoked.where('revoked_at_ms', 'is', null).returning('id').execute();
      if (rows.length === 0) return false;
      const newest = sql<number>`(select revoked_at_ms from ${sql.table('admin_tokens')} where revoked_at_ms is not null
        order by revoked_at_ms desc limit 1 offset ${REVOKED_MAX})`;
      await trx.deleteFrom('admin_tokens').where('revoked_at_ms', '<=', newest).execute();
      await noteChange(trx, change);
      return true;
    });
  }

  /** Stores when a token was used, unless the store has a use since `sinceMs`. */
  async used(id: string, atMs: number, sinceMs: number): Promise<void> {
    const token = this.#db.updateTable('admin_tokens').set({ last_used_at_ms: atMs }).where('id', '=', id);
    await token
      .where((it) => it.or([it('last_used_at_ms', 'is', null), it('last_used_at_ms', '<', sinceMs)]))
      .execute();
  }
}

/**
 * Removes a box from the tokens that are restricted to boxes, and revokes tokens that have no box left. A box that gets
 * this code later may belong to another shop. Must be called in the transaction that removes the box.
 */
export async function takeBoxOut(db: Kysely<Tables>, terminalCode: string, by: ChangedBy): Promise<void> {
  const inUse = db.selectFrom('admin_tokens').select(['id', 'name', 'boxes']).where('revoked_at_ms', 'is', null);
  for (const { id, name, boxes } of await inUse.where('boxes', 'is not', null).execute()) {
    const codes = JSON.parse(boxes ?? '[]') as string[];
    if (!codes.includes(terminalCode)) continue;
    const left = codes.filter((it) => it !== terminalCode);
    const isOver = left.length === 0;
    const columns = isOver ? { revoked_at_ms: by.at_ms } : { boxes: JSON.stringify(left) };
    await db.updateTable('admin_tokens').set(columns).where('id', '=', id).execute();
    const detail = JSON.stringify({ removed: terminalCode, ...(isOver ? {} : { boxes: left }) });
    await noteChange(db, { ...by, what: isOver ? 'revoked' : 'changed', target: `tokens/${name}`, detail });
  }
}
