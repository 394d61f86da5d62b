import { type FileHandle, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { ConfigError, PayboxError, reasonOf, systemCodeOf } from '../../lib/errors.ts';
import { MIGRATIONS } from './migrations.ts';
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
export function checkBackup(file: string): BackupFacts {
  const address = pathToFileURL(file);
  // Without this, SQLite would make files beside it, and believe a log that is there of something else.
  address.searchParams.set('immutable', '1');
  try {
    const db = new DatabaseSync(address, { readOnly: true });
    try {
      return factsOf(db, file);
    } finally {
      db.close();
    }
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    throw damaged(file, reasonOf(error));
  }
}

function factsOf(db: DatabaseSync, file: string): BackupFacts {
  const one = (sql: string) => Object.values(db.prepare(sql).get() ?? {})[0];
  const found = String(one('pragma integrity_check(1)'));
  if (found !== 'ok') throw damaged(file, found.replace(/^\*\*\*.*\n/, ''));
  const migrations = db.prepare('select name from kysely_migration').all();
  const newer = migrations.find(({ name }) => !(String(name) in MIGRATIONS));
  if (newer !== undefined) {
    const fix = 'use the version that made it, or a newer one';
    throw new ConfigError(`${file} is of a newer version: it has ${newer.name}`, fix);
  }
  const newest = one('select max(paid_at_ms) from payments');
  return {
    orders: Number(one('select count(*) from orders')),
    payments: Number(one('select count(*) from payments')),
    owed: Number(one("select count(*) from callbacks where status = 'pending'")),
    newestPaymentAtMs: newest === null ? undefined : Number(newest),
  };
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
  { replace, stamp }: { replace: boolean; stamp: string },
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

/** `gateway.sqlite-wal` becomes `gateway.before-….sqlite-wal`: the files still belong together. */
function aside(name: string, stamp: string): string {
  return name.replace(/^gateway/, `gateway.before-${stamp}`);
}

/** Its log, and the mark of its last payment, without which it would seem to have lost some. */
async function filesOfStore(path: string): Promise<string[]> {
  const own = [basename(path), `${basename(path)}-wal`, `${basename(path)}-shm`, 'gateway.mark'];
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
