import { type FileHandle, open } from 'node:fs/promises';
import { Kysely, sql } from 'kysely';
import { ConfigError, reasonOf } from '../../lib/errors.ts';
import { type LedgerEnd, verifyLedger } from './ledger.ts';
import { MIGRATIONS } from './migrations.ts';
import type { Tables } from './schema.ts';
import { readOnlyFile } from './sqlite.ts';

/** First bytes of a SQLite file, and of what pg_dump writes with --format=custom. */
const SQLITE_BEGIN = 'SQLite format 3\0';
const POSTGRES_BEGIN = 'PGDMP';

/** What a backup holds. */
export interface BackupFacts {
  orders: number;
  payments: number;
  /** Callbacks that a partner is still to be told. */
  owed: number;
  newestPaymentAtMs: number | undefined;
  /** How far its payments go; `undefined` for a backup of an older version. */
  end: LedgerEnd | undefined;
}

/** Which store a backup is of. Throws ConfigError for what is no backup. */
export async function kindOfBackup(file: string): Promise<'sqlite' | 'postgres'> {
  const begin = Buffer.alloc(SQLITE_BEGIN.length);
  let handle: FileHandle | undefined;
  try {
    handle = await open(file, 'r');
    await handle.read(begin, 0, begin.length, 0);
  } catch (error) {
    throw new ConfigError(`${file} cannot be read: ${reasonOf(error)}`, 'name a file that paybox backup has made');
  } finally {
    await handle?.close();
  }
  if (begin.toString('latin1') === SQLITE_BEGIN) return 'sqlite';
  if (begin.toString('latin1').startsWith(POSTGRES_BEGIN)) return 'postgres';
  throw new ConfigError(`${file} is no backup of a gateway`, 'name a file that paybox backup has made');
}

/** Looks through a backup of a SQLite store, which is left as it is. Throws ConfigError that says what is wrong. */
export async function checkBackup(file: string): Promise<BackupFacts> {
  const db = new Kysely<Tables>({ dialect: readOnlyFile(file) });
  try {
    const found = Object.values((await sql`pragma integrity_check(1)`.execute(db)).rows[0] ?? {})[0];
    if (found !== 'ok') throw damaged(file, String(found).replace(/^\*\*\*.*\n/, ''));
    const made = (await sql<{ name: string }>`select name from kysely_migration`.execute(db)).rows;
    const newer = made.find(({ name }) => !(name in MIGRATIONS));
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

async function factsOf(db: Kysely<Tables>): Promise<Omit<BackupFacts, 'end'>> {
  const count = (table: 'orders' | 'payments' | 'callbacks') =>
    db.selectFrom(table).select((it) => it.fn.countAll<number>().as('count'));
  const newest = await db
    .selectFrom('payments')
    .select((it) => it.fn.max('paid_at_ms').as('at_ms'))
    .executeTakeFirst();
  return {
    orders: (await count('orders').executeTakeFirstOrThrow()).count,
    payments: (await count('payments').executeTakeFirstOrThrow()).count,
    owed: (await count('callbacks').where('status', '=', 'pending').executeTakeFirstOrThrow()).count,
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
