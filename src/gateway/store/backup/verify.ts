import { Kysely, sql } from 'kysely';
import { ConfigError, reasonOf } from '../../../lib/errors.ts';
import { readOnlySqlite } from '../engines/sqlite.ts';
import { type LedgerHead, verifyLedger } from '../integrity/ledger.ts';
import { RegistryStore } from '../repositories/registry.ts';
import { appliedMigrations, schemaDifference } from '../schema/difference.ts';
import { MIGRATIONS } from '../schema/migrations.ts';
import type { Tables } from '../schema/tables.ts';

export interface BackupSummary {
  orders: number;
  payments: number;
  pendingCallbacks: number;
  newestPaymentAtMs: number | undefined;
  /** The id of the key that decrypts its secrets. `undefined` for a backup without secrets. */
  keyId: string | undefined;
  /** The newest payment. `undefined` for a backup of an older version. */
  head: LedgerHead | undefined;
}

/** Checks a copy of a SQLite backup without changing it. Throws a ConfigError that names `file` and the damage. */
export async function verifyBackup(copy: string, file: string): Promise<BackupSummary> {
  const db = new Kysely<Tables>({ dialect: readOnlySqlite(copy) });
  try {
    // The schema is checked first, because a foreign trigger or view must not run.
    const difference = await schemaDifference(db);
    if (difference !== undefined)
      throw new ConfigError(`${file} is not a backup of a gateway: ${difference}`, 'make another backup');
    const found = Object.values((await sql`pragma integrity_check(1)`.execute(db)).rows[0] ?? {})[0];
    if (found !== 'ok') throw damaged(file, String(found).replace(/^\*\*\*.*\n/, ''));
    const applied = await appliedMigrations(db);
    const newer = applied.find((name) => !Object.hasOwn(MIGRATIONS, name));
    if (newer !== undefined) {
      const what = `${file} is of a newer version: it has ${newer}`;
      throw new ConfigError(what, 'use the version that made it, or a newer one');
    }
    if (applied.length < Object.keys(MIGRATIONS).length) return { ...(await countsOf(db)), head: undefined };
    const { heads, problems } = await verifyLedger(db);
    if (problems.length > 0) throw damaged(file, problems.join('; '));
    return { ...(await countsOf(db)), head: heads.get('') };
  } catch (error) {
    throw error instanceof ConfigError && error.message.startsWith(file) ? error : damaged(file, reasonOf(error));
  } finally {
    await db.destroy();
  }
}

async function countsOf(db: Kysely<Tables>): Promise<Omit<BackupSummary, 'head'>> {
  const count = (table: 'orders' | 'payments' | 'callbacks') =>
    db.selectFrom(table).select((it) => it.fn.countAll<number>().as('count'));
  const newest = db.selectFrom('payments').select((it) => it.fn.max('paid_at_ms').as('at_ms'));
  return {
    orders: (await count('orders').executeTakeFirstOrThrow()).count,
    payments: (await count('payments').executeTakeFirstOrThrow()).count,
    pendingCallbacks: (await count('callbacks').where('status', '=', 'pending').executeTakeFirstOrThrow()).count,
    newestPaymentAtMs: (await newest.executeTakeFirst())?.at_ms ?? undefined,
    keyId: await new RegistryStore(db).keyId(),
  };
}

function damaged(file: string, reason: string): ConfigError {
  return new ConfigError(`${file} is damaged: ${reason}`, 'make another backup; this one is not changed');
}
