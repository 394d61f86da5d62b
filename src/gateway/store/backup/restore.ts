import { closeSync, existsSync, lstatSync } from 'node:fs';
import { mkdir, open, readdir, rename, rm, rmdir, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { ConfigError, PayboxError, reasonOf, systemCodeOf } from '../../../lib/errors.ts';
import { highWaterMarkFile, writeHighWaterMark } from '../integrity/high-water-mark.ts';
import { NO_PAYMENT } from '../integrity/ledger.ts';
import { restoringFile, stampOfStoppedRestore, storeFile } from '../store-files.ts';
import { type BackupFile, copyBackup } from './backup-file.ts';
import { type BackupSummary, verifyBackup } from './verify.ts';

const OWNER_ONLY = 0o600;
/** Result code of SQLite: another process has locked the file. */
const BUSY = 5;

/** The paths of one restore in dataDir. */
interface RestorePaths {
  dataDir: string;
  store: string;
  mark: string;
  /** An incomplete copy. A start ignores it. */
  incomingStore: string;
  /** The mark of the new store. It exists before the first file is moved, until it is renamed to `mark`. */
  incomingMark: string;
  /** The complete copy. While it exists, every start is refused, and the next restore finishes this one. */
  restoring: string;
  /** The prefix of every file that is moved aside. */
  asidePrefix: string;
}

/**
 * Puts a backup in place of the SQLite store in this folder. With `replace`, renames the files of an existing store
 * first. After an interruption at any moment, the next start finds the complete old store or the complete new one, or
 * it is refused until a restore ends. An interrupted restore is finished under its own stamp, so that the files of the
 * old store share one prefix. Returns a summary of the backup and the new path of the old store. Throws ConfigError
 * when a store exists or is in use. Throws a PayboxError `STORAGE_FAULT` when a
 * step fails. It says what the folder contains then.
 */
export async function restoreBackup(
  backup: BackupFile,
  dataDir: string,
  { replace, stamp: freshStamp }: { replace: boolean; stamp: string },
): Promise<{ summary: BackupSummary; aside: string | undefined }> {
  const paths = pathsOf(dataDir, stampOfStoppedRestore(dataDir) ?? freshStamp);
  let isPlaced = false;
  let firstMade: string | undefined;
  try {
    firstMade = await mkdir(dataDir, { recursive: true, mode: 0o700 });
    await takeMarkBack(paths);
    const existing = await filesOfStore(paths);
    if (existing.includes(paths.store)) assertUnused(paths.store);
    if (existing.length > 0 && !replace) {
      throw new ConfigError(`a store is in ${dataDir} already`, 'with --replace it is moved aside; nothing is deleted');
    }
    const summary = await copyIn(backup, paths);
    await putInPlace(paths);
    isPlaced = true;
    await syncFolder(dataDir);
    const isMoved = (await readdir(dataDir)).some((name) => name.startsWith(paths.asidePrefix));
    return { summary, aside: isMoved ? asideOf(paths, paths.store) : undefined };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw await interrupted(paths, isPlaced, error);
    if (firstMade !== undefined) await removeEmpty(dataDir, firstMade);
    throw error;
  }
}

/** Removes the folder, and those of its parents that this restore has created. */
async function removeEmpty(folder: string, firstMade: string): Promise<void> {
  // If somebody uses the folder meanwhile, rmdir fails and the folder stays.
  for (let at = resolve(folder); at.startsWith(resolve(firstMade)); at = dirname(at)) {
    await rmdir(at).catch(() => undefined);
  }
}

function pathsOf(dataDir: string, stamp: string): RestorePaths {
  return {
    dataDir,
    store: storeFile(dataDir),
    mark: highWaterMarkFile({ dataDir }),
    incomingStore: join(dataDir, 'gateway.incoming.sqlite'),
    incomingMark: join(dataDir, 'gateway.incoming.mark'),
    restoring: restoringFile(dataDir, stamp),
    asidePrefix: `gateway.before-${stamp}.`,
  };
}

/**
 * Returns the new path of a file that is moved aside. `gateway.sqlite-wal` becomes `gateway.before-….sqlite-wal`, so
 * that the files still belong together.
 */
function asideOf({ dataDir, asidePrefix }: RestorePaths, file: string): string {
  return join(dataDir, basename(file).replace(/^gateway\./, asidePrefix));
}

/** Returns the existing files of the store. The mark is one, because it does not fit the new store's payments. */
async function filesOfStore({ dataDir, store, mark }: RestorePaths): Promise<string[]> {
  const own = [store, `${store}-wal`, `${store}-shm`, mark];
  return (await readdir(dataDir)).map((name) => join(dataDir, name)).filter((file) => own.includes(file));
}

/** Renames the mark of an interrupted restore back. That mark does not belong to the old store. */
async function takeMarkBack({ restoring, incomingMark, mark }: RestorePaths): Promise<void> {
  if (existsSync(restoring) && !existsSync(incomingMark) && existsSync(mark)) await rename(mark, incomingMark);
}

/** Copies and checks the backup, and writes its mark, durably. After the last step every start is refused. */
async function copyIn(backup: BackupFile, paths: RestorePaths): Promise<BackupSummary> {
  const { dataDir, incomingStore, incomingMark, restoring } = paths;
  const owner = await stat(dataDir);
  await rm(incomingStore, { force: true });
  const target = await open(incomingStore, 'wx', OWNER_ONLY);
  let summary: BackupSummary;
  try {
    if (process.getuid?.() === 0) await target.chown(owner.uid, owner.gid);
    await copyBackup(backup, target, dataDir);
    // The copy is checked and not the backup, because the owner of the backup may change it at any time.
    summary = await verifyBackup(incomingStore, backup.file);
  } catch (error) {
    await rm(incomingStore, { force: true });
    throw error;
  } finally {
    await target.close();
  }
  closeSync(writeHighWaterMark(incomingMark, summary.head ?? NO_PAYMENT, { owner }));
  await syncFolder(dataDir);
  await rename(incomingStore, restoring);
  await syncFolder(dataDir);
  return summary;
}

/** Moves the files into their places, each step durable before the next. Then a start is possible again. */
async function putInPlace(paths: RestorePaths): Promise<void> {
  for (const old of await filesOfStore(paths)) await rename(old, asideOf(paths, old));
  await syncFolder(paths.dataDir);
  await rename(paths.incomingMark, paths.mark);
  await syncFolder(paths.dataDir);
  await rename(paths.restoring, paths.store);
}

/** Removes incomplete files. Returns an error that says what the folder contains, and what to do. */
async function interrupted(paths: RestorePaths, isPlaced: boolean, cause: unknown): Promise<PayboxError> {
  const { dataDir, restoring, incomingStore, incomingMark, asidePrefix } = paths;
  const isMidway = existsSync(restoring);
  const remains = [incomingStore, `${incomingMark}.new`, ...(isMidway ? [] : [incomingMark])];
  // The next restore overwrites a file that cannot be removed.
  await Promise.allSettled(remains.map((file) => rm(file, { force: true })));
  const before = `the earlier files are still there, or begin with ${asidePrefix}`;
  let fix = 'the earlier files are unchanged';
  if (isMidway) fix = `correct that, and run it again to finish it: no gateway starts until then; ${before}`;
  if (isPlaced) fix = `the backup is in its place, but a power cut may undo that; ${before}`;
  const what = `the store cannot be put into ${dataDir}: ${reasonOf(cause)}`;
  return new PayboxError('STORAGE_FAULT', what, { severity: 'fatal', fix, cause });
}

function assertUnused(path: string): void {
  // Only a file can be a store in use. Opening a pipe would block without end.
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
    // Other errors do not matter, because damage may be the reason for the restore.
    if (isBusy) throw new ConfigError(`a gateway uses the store ${path}`, 'stop it first');
  }
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } catch (error) {
    // Some file systems cannot sync a folder.
    if (systemCodeOf(error) !== 'EINVAL') throw error;
  } finally {
    await handle.close();
  }
}
