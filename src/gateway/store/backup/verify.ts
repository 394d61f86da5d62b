import { Kysely, sql } from 'kysely';
import { ConfigError, reasonOf } from '../../../lib/errors.ts';
import { readOnlySqlite } from '../engines/sqlite.ts';
import { type LedgerHead, verifyLedger } from '../integrity/ledger.ts';
import { schemaDifference } from '../schema/difference.ts';
import { MIGRATIONS } from '../schema/migrations.ts';
import type { Tables } from '../schema/tables.ts';

/** What a backup holds. */
export interface BackupSummary {
  orders: number;
  payments: number;
  /** Callbacks that a partner is still to be told. */
  pendingCallbacks: number;
  newestPaymentAtMs: number | undefined;
  /** How far its payments go; `undefined` for a backup of an older version. */
  end: LedgerHead | undefined;
}

/** Looks through a copy of a backup of a SQLite store, and leaves it as it is. Throws ConfigError that says what is wrong with `file`. */
export async function verifyBackup(copy: string, file: string): Promise<BackupSummary> {
  const db = new Kysely<Tables>({ dialect: readOnlySqlite(copy) });
  try {
    // Before anything of it is run.
    const foreign = await schemaDifference(db);
    if (foreign !== undefined)
      throw new ConfigError(`${file} is no backup of a gateway: ${foreign}`, 'take another one');
    const found = Object.values((await sql`pragma integrity_check(1)`.execute(db)).rows[0] ?? {})[0];
    if (found !== 'ok') throw damaged(file, String(found).replace(/^\*\*\*.*\n/, ''));
    const made = (await sql<{ name: string }>`select name from kysely_migration`.execute(db)).rows;
    const newer = made.find(({ name }) => !Object.hasOwn(MIGRATIONS, name));
    if (newer !== undefined) throw ofNewerVersion(file, newer.name);
    if (made.length < Object.keys(MIGRATIONS).length) return { ...(await factsOf(db)), end: undefined };
    const { end, problems } = await verifyLedger(db);
    if (problems.length > 0) throw damaged(file, problems.join('; '));
    return { ...(await factsOf(db)), end };
  } catch (error) {
    throw error instanceof ConfigError && error.message.startsWith(file) ? error : damaged(file, reasonOf(error));
  } finally {
    await db.destroy();
  }
}

async function factsOf(db: Kysely<Tables>): Promise<Omit<BackupSummary, 'end'>> {
  const count = (table: 'orders' | 'payments' | 'callbacks') =>
    db.selectFrom(table).select((it) => it.fn.countAll<number>().as('count'));
  const newest = await db
    .selectFrom('payments')
    .select((it) => it.fn.max('paid_at_ms').as('at_ms'))
    .executeTakeFirst();
  return {
    orders: (await count('orders').executeTakeFirstOrThrow()).count,
    payments: (await count('payments').executeTakeFirstOrThrow()).count,
    pendingCallbacks: (await count('callbacks').where('status', '=', 'pending').executeTakeFirstOrThrow()).count,
    newestPaymentAtMs: newest?.at_ms ?? undefined,
  };
}

function ofNewerVersion(file: string, migration: string): ConfigError {
  return new ConfigError(
    `${file} is of a newer version: it has ${migration}`,
    'use the version that made it, or a newer one',
  );
}

function damaged(file: string, reason: string): ConfigError {
  return new ConfigError(`${file} is damaged: ${reason}`, 'take another backup; this one is left as it is');
}
