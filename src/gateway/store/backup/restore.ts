import { closeSync, existsSync, lstatSync } from 'node:fs';
import { mkdir, open, readdir, rename, rm, rmdir, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { ConfigError, PayboxError, reasonOf, systemCodeOf } from '../../../lib/errors.ts';
import { highWaterMarkFile, writeHighWaterMark } from '../integrity/high-water-mark.ts';
import type { LedgerHead } from '../integrity/ledger.ts';
import { type BackupFile, copyBackup } from './backup-file.ts';
import { restoringFile, stampOfStoppedRestore, storeFile } from './store-files.ts';
import { type BackupSummary, verifyBackup } from './verify.ts';

const OWNER_ONLY = 0o600;
/** Primary result code of SQLite: somebody else has the file. */
const BUSY = 5;
/** Of a backup of an older version: a start misses nothing of it. */
const NO_PAYMENT: LedgerHead = { seq: 0, link: '' };

interface Owner {
  uid: number;
  gid: number;
}

/** The names that the files of one restore have in dataDir. */
interface Names {
  dataDir: string;
  store: string;
  mark: string;
  /** A copy that is not whole yet, which means nothing to a start. */
  incomingStore: string;
  /** Is there from before anything is moved until it is in the place of the mark. */
  incomingMark: string;
  /** The whole copy: while it is there a start is refused, and this restore is finished by the next one. */
  restoring: string;
  /** What the names begin with of all that is moved aside. */
  moved: string;
  /** `gateway.sqlite-wal` becomes `gateway.before-….sqlite-wal`: the files still belong together. */
  aside: (file: string) => string;
}

/**
 * Puts a backup in the place of the SQLite store in this folder. A store that is there is moved aside with all that
 * belongs to it, where `replace` allows it. Wherever it is stopped, a start finds the old store whole, or the new one, or is
 * refused until a restore ends. One that was stopped is finished under its own stamp: the parts of the old store keep one
 * name. Returns what the backup holds, and the name that the old store has now. Throws ConfigError when a store is there or in use, and PayboxError
 * `STORAGE_FAULT` that says what is there.
 */
export async function restoreBackup(
  backup: BackupFile,
  dataDir: string,
  { replace, stamp: freshStamp }: { replace: boolean; stamp: string },
): Promise<{ facts: BackupSummary; aside: string | undefined }> {
  const names = namesOf(dataDir, stampOfStoppedRestore(dataDir) ?? freshStamp);
  let isPlaced = false;
  let firstMade: string | undefined;
  let facts: BackupSummary;
  try {
    firstMade = await mkdir(dataDir, { recursive: true, mode: 0o700 });
    await takeMarkBack(names);
    const there = await filesOfStore(names);
    if (there.includes(names.store)) assertUnused(names.store);
    if (there.length > 0 && !replace) {
      throw new ConfigError(`a store is in ${dataDir} already`, 'with --replace it is moved aside; nothing is deleted');
    }
    facts = await bringIn(backup, names);
    await putInPlace(names);
    isPlaced = true;
    await syncFolder(dataDir);
  } catch (error) {
    if (error instanceof ConfigError && firstMade !== undefined) await removeEmpty(dataDir, firstMade);
    if (error instanceof ConfigError) throw error;
    throw await stopped(names, isPlaced, error);
  }
  const isMoved = (await readdir(dataDir)).some((name) => name.startsWith(names.moved));
  return { facts, aside: isMoved ? names.aside(names.store) : undefined };
}

/** The folder and those above it, as far as they were made. */
async function removeEmpty(folder: string, firstMade: string): Promise<void> {
  // One that somebody else uses already stays.
  for (let at = resolve(folder); at.startsWith(resolve(firstMade)); at = dirname(at))
    await rmdir(at).catch(() => undefined);
}

function namesOf(dataDir: string, stamp: string): Names {
  const moved = `gateway.before-${stamp}.`;
  return {
    dataDir,
    store: storeFile(dataDir),
    mark: highWaterMarkFile({ dataDir }),
    incomingStore: join(dataDir, 'gateway.incoming.sqlite'),
    incomingMark: join(dataDir, 'gateway.incoming.mark'),
    restoring: restoringFile(dataDir, stamp),
    moved,
    aside: (file) => join(dataDir, basename(file).replace(/^gateway\./, moved)),
  };
}

/** What is there of a store: also its log, and the mark of its last payment, without which it would seem to have lost some. */
async function filesOfStore({ dataDir, store, mark }: Names): Promise<string[]> {
  const own = [store, `${store}-wal`, `${store}-shm`, mark];
  return (await readdir(dataDir)).map((name) => join(dataDir, name)).filter((file) => own.includes(file));
}

/** Of a restore that was stopped with its own mark in place already: it is none of the old store. */
async function takeMarkBack({ restoring, incomingMark, mark }: Names): Promise<void> {
  if (existsSync(restoring) && !existsSync(incomingMark) && existsSync(mark)) await rename(mark, incomingMark);
}

/** Copies the backup, looks the copy through and makes its mark, on the disk, and refuses every start from there on. */
async function bringIn(backup: BackupFile, names: Names): Promise<BackupSummary> {
  const owner = await stat(names.dataDir);
  const facts = await copyWhole(backup, names.incomingStore, owner);
  closeSync(writeHighWaterMark(names.incomingMark, facts.end ?? NO_PAYMENT, owner));
  await syncFolder(names.dataDir);
  await rename(names.incomingStore, names.restoring);
  await syncFolder(names.dataDir);
  return facts;
}

/** Each step is on the disk before the next; the last one allows a start again. */
async function putInPlace(names: Names): Promise<void> {
  for (const old of await filesOfStore(names)) await rename(old, names.aside(old));
  await syncFolder(names.dataDir);
  await rename(names.incomingMark, names.mark);
  await syncFolder(names.dataDir);
  await rename(names.restoring, names.store);
}

/** Takes away what means nothing; an error with what is there now, and what to do. */
async function stopped(names: Names, isPlaced: boolean, cause: unknown): Promise<PayboxError> {
  const { dataDir, restoring, incomingStore, incomingMark, moved } = names;
  const isMidway = existsSync(restoring);
  const remains = [incomingStore, `${incomingMark}.new`, ...(isMidway ? [] : [incomingMark])];
  // What a failing disk does not give away, the next restore overwrites.
  await Promise.allSettled(remains.map((file) => rm(file, { force: true })));
  const before = `what was there before is there, or begins with ${moved}`;
  let fix = 'what was there is there, as it was';
  if (isMidway) fix = `correct that, and run it again to finish it: no gateway starts until then; ${before}`;
  if (isPlaced) fix = `the backup is in its place, but a power cut may undo that; ${before}`;
  return new PayboxError('STORAGE_FAULT', `${dataDir} does not take the store: ${reasonOf(cause)}`, {
    severity: 'fatal',
    fix,
    cause,
  });
}

function assertUnused(path: string): void {
  // What is no file is no store in use; a pipe would hold the caller for ever.
  if (!lstatSync(path).isFile()) return;
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

/**
 * With the mode and the owner of a store from the first byte on, on the disk before anything else is moved. The copy is
 * what is looked through: whoever owns the backup may change that one at any time. Leaves no copy that it throws ConfigError for.
 */
async function copyWhole(backup: BackupFile, to: string, owner: Owner): Promise<BackupSummary> {
  await rm(to, { force: true });
  const target = await open(to, 'wx', OWNER_ONLY);
  try {
    if (process.getuid?.() === 0) await target.chown(owner.uid, owner.gid);
    await copyBackup(backup, target, dirname(to));
    return await verifyBackup(to, backup.file);
  } catch (error) {
    await rm(to, { force: true });
    throw error;
  } finally {
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
