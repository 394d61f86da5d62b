import { chown, type FileHandle, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Kysely, sql } from 'kysely';
import { ConfigError, PayboxError, reasonOf, systemCodeOf } from '../../lib/errors.ts';
import { type LedgerEnd, verifyLedger } from './ledger.ts';
import { markFile, writeMark } from './mark.ts';
import { MIGRATIONS } from './migrations.ts';
import type { Tables } from './schema.ts';
import { readOnlyFile } from './sqlite.ts';
import { storeFile } from './store.ts';

const OWNER_ONLY = 0o600;
const COPY_BYTES_AT_ONCE = 1_048_576;
/** First bytes of a SQLite file, and of what pg_dump writes with --format=custom. */
const SQLITE_BEGIN = 'SQLite format 3\0';
const POSTGRES_BEGIN = 'PGDMP';
/** Primary result code of SQLite: somebody else has the file. */
const BUSY = 5;

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

/**
 * Puts a backup in the place of the SQLite store in this folder. A store that is there is moved aside with all that
 * belongs to it, where `replace` allows it. Returns the name that its files have now. Throws ConfigError when a store
 * is there or in use.
 */
export async function placeBackup(
  file: string,
  dataDir: string,
  { replace, stamp, end }: { replace: boolean; stamp: string; end: LedgerEnd | undefined },
): Promise<string | undefined> {
  const path = storeFile(dataDir);
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const { uid, gid } = await stat(dataDir);
  const there = await filesOfStore(path);
  if (there.includes(basename(path))) assertUnused(path);
  if (there.length > 0 && !replace) {
    throw new ConfigError(`a store is in ${dataDir} already`, 'with --replace it is moved aside; nothing is deleted');
  }
  const incoming = `${path}.restoring`;
  try {
    await copyOnDisk(file, incoming, { uid, gid });
    for (const name of there) await rename(join(dataDir, name), join(dataDir, aside(name, stamp)));
    await rename(incoming, path);
    if (end !== undefined) await placeMark(dataDir, end, { uid, gid });
  } catch (error) {
    throw new PayboxError('STORAGE_FAULT', `${dataDir} does not take the store: ${reasonOf(error)}`, {
      severity: 'fatal',
      fix: `what was there is there, as it was or under the name ${aside(basename(path), stamp)}`,
      cause: error,
    });
  } finally {
    await rm(incoming, { force: true });
  }
  await syncFolder(dataDir);
  return there.length > 0 ? join(dataDir, aside(basename(path), stamp)) : undefined;
}

/** A start then misses nothing but what is missing in the backup. */
async function placeMark(dataDir: string, end: LedgerEnd, { uid, gid }: { uid: number; gid: number }): Promise<void> {
  const mark = markFile({ dataDir });
  writeMark(mark, end);
  if (process.getuid?.() === 0) await chown(mark, uid, gid);
}

/** `gateway.sqlite-wal` becomes `gateway.before-….sqlite-wal`: the files still belong together. */
function aside(name: string, stamp: string): string {
  return name.replace(/^gateway/, `gateway.before-${stamp}`);
}

/** Its log, and the mark of its last payment, without which it would seem to have lost some. */
async function filesOfStore(path: string): Promise<string[]> {
  const own = [
    basename(path),
    `${basename(path)}-wal`,
    `${basename(path)}-shm`,
    basename(markFile({ dataDir: dirname(path) })),
  ];
  return (await readdir(dirname(path))).filter((name) => own.includes(name));
}

function assertUnused(path: string): void {
  try {
    const db = new DatabaseSync(path, { readOnly: true });
    try {
      db.prepare('select 1 from sqlite_schema').all();
    } finally {
      db.close();
    }
  } catch (error) {
    const isBusy = error instanceof Error && 'errcode' in error && (Number(error.errcode) & 0xff) === BUSY;
    // What else is wrong with it is why a backup is restored.
    if (isBusy) throw new ConfigError(`a gateway uses the store ${path}`, 'stop it first');
  }
}

/** With the mode and the owner of a store from the first byte on, on the disk before anything else is moved. */
async function copyOnDisk(from: string, to: string, owner: { uid: number; gid: number }): Promise<void> {
  await rm(to, { force: true });
  const [source, target] = [await open(from, 'r'), await open(to, 'wx', OWNER_ONLY)];
  try {
    if (process.getuid?.() === 0) await target.chown(owner.uid, owner.gid);
    const chunk = Buffer.alloc(COPY_BYTES_AT_ONCE);
    for (let read = await source.read(chunk); read.bytesRead > 0; read = await source.read(chunk)) {
      await target.writeFile(chunk.subarray(0, read.bytesRead));
    }
    await target.sync();
  } finally {
    await source.close();
    await target.close();
  }
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } catch (error) {
    // Some file systems know no such thing.
    if (systemCodeOf(error) !== 'EINVAL') throw error;
  } finally {
    await handle.close();
  }
}
