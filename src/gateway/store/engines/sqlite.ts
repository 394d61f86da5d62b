import { chmodSync, closeSync, openSync, statSync } from 'node:fs';
import { backup, DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { type Dialect, type SqliteDatabase, SqliteDialect, type SqliteStatement } from 'kysely';
import { ConfigError, PayboxError, reasonOf } from '../../../lib/errors.ts';
import { assertFile, NotAFileError } from '../../../lib/files.ts';
import type { Logger } from '../../../lib/log.ts';
import { CHECKED_TABLES, CHECKSUM_FUNCTION, checksumOf } from '../integrity/checksums.ts';
import { DurableSqliteDialect, type OpenSqlite } from './sqlite-dialect.ts';
import { type SyncFile, WalSync } from './wal-sync.ts';

/** At most this many prepared statements are cached. The store has fewer queries. */
const STATEMENTS_MAX = 200;
/** The reason is cut because an error of SQLite may quote the whole text of a trigger. */
const REASON_CHARS_MAX = 300;
const OWNER_ONLY = 0o600;
const COMPANIONS = ['-wal', '-shm', '-journal'];
/** A backup copies this many pages at once. Queries wait about a millisecond for it. */
const PAGES_AT_ONCE = 100;

/** At most this many findings are read. */
const FINDINGS_MAX = 10_000;
/** At most this many findings are logged. */
const NAMED_MAX = 10;
/**
 * Only indexes of these tables are rebuilt. Where a row and its index differ, the row may be the damaged one. In these
 * tables checksums find that, or it matters little. In settings or secrets nothing would find it.
 */
const REINDEXED_TABLES: readonly string[] = [...CHECKED_TABLES, 'callback_attempts', 'qr_codes', 'known_logins'];
/** A finding about an index alone. The index can be rebuilt from its table. */
const INDEX_FINDING = /^(row \d+ missing from index|wrong # of entries in index) (?<index>\S+)$/;

/** Primary result codes of SQLite. */
const BUSY = 5;
const CONSTRAINT = 19;
const DAMAGED = [11, 24, 26];

export interface SqliteFile {
  /** Opens the file at the first query. That query throws ConfigError when the file is damaged or in use. */
  dialect: Dialect;
  /** Throws a PayboxError when the file was deleted or replaced, because a restart would not find new data. */
  assertInPlace(): void;
  /** Copies the current state while others read and write the store. */
  copyTo(file: string): Promise<void>;
}

/**
 * Opens a SQLite file, and creates a missing one. A query settles once everything that it may have seen is on the disk
 * (see WalSync).
 *
 * Invariants. Only one process has the file open. The whole file is checked at the start, so that no call reads a
 * damaged page later. A commit into a deleted or replaced file is refused, because a restart would not find it.
 */
export function sqliteFile(path: string, log: Logger, sync?: SyncFile): SqliteFile {
  let files: ReadonlyMap<string, string> = new Map();
  const assertInPlace = () => {
    for (const [file, inode] of files) if (inodeOf(file) !== inode) throw replaced(file);
  };
  let opened: DatabaseSync | undefined;
  const open = (): OpenSqlite => {
    const db = openSqlite(path, log);
    opened = db;
    files = new Map([path, walOf(path)].map((file) => [file, inodeOf(file)]));
    const disk = new WalSync(path, walOf(path), sync);
    const beginCommit = () => {
      assertInPlace();
      disk.beginCommit();
    };
    return { db, disk, adapted: adaptDatabase(db, path, beginCommit) };
  };
  const copyTo = async (file: string) => {
    assertInPlace();
    if (opened === undefined) throw new Error(`the store ${path} is not open`);
    await backup(opened, file, { rate: PAGES_AT_ONCE });
  };
  return {
    dialect: new DurableSqliteDialect(open),
    assertInPlace,
    copyTo,
  };
}

/** Opens a SQLite file read only. No program may write to it meanwhile. It creates no other file, and ignores the file's log. */
export function readOnlySqlite(path: string): Dialect {
  const address = pathToFileURL(path);
  address.searchParams.set('immutable', '1');
  const open = () => {
    const db = new DatabaseSync(address, { readOnly: true });
    addChecksum(db);
    return adaptDatabase(db, path, () => undefined);
  };
  return new SqliteDialect({ database: async () => open() });
}

export function memorySqlite(): Dialect {
  const open = () => {
    const db = new DatabaseSync(':memory:');
    addChecksum(db);
    return adaptDatabase(db, 'in memory', () => undefined);
  };
  return new SqliteDialect({ database: async () => open() });
}

function addChecksum(db: DatabaseSync): void {
  db.function(CHECKSUM_FUNCTION, { deterministic: true }, (text) => checksumOf(String(text)));
}

/** Adds advice to an error of the start: the file is damaged, or cannot be opened or written. */
export function sqliteProblem(path: string, error: unknown): Error {
  if (error instanceof ConfigError) return error;
  // The schema is damaged if SQLite does not find a column or a table.
  if (/^no such (column|table)/.test(reasonOf(error))) return damaged(path, reasonOf(error));
  return new ConfigError(
    `dataDir: the store ${path} cannot be opened: ${reasonOf(error)}`,
    'use a folder that this user can write, on a disk with room',
  );
}

function openSqlite(path: string, log: Logger): DatabaseSync {
  for (const end of ['', ...COMPANIONS]) refuseOther(`${path}${end}`);
  refuseOrphanWal(path, log);
  let db: DatabaseSync | undefined;
  try {
    restrictPermissions(path);
    db = new DatabaseSync(path);
    addChecksum(db);
    // EXCLUSIVE: two gateways on one folder would announce the same payments twice. NORMAL, without SQLite's own
    // checkpoints: acknowledged changes must survive a power cut, but WalSync waits for the disk.
    db.exec(
      'PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0',
    );
    // Otherwise every call that reads a damaged page would fail. The check takes about 3 ms per MB.
    let findings = findingsIn(db);
    if (findings.length > 0 && areOnlyIndexes(db, findings)) {
      reindex(db, path);
      log.warn('store-index-rebuilt', { file: path, reason: findings.slice(0, NAMED_MAX).join('; ') });
      findings = findingsIn(db);
    }
    if (findings[0] !== undefined) throw damaged(path, findings[0]);
    return db;
  } catch (error) {
    db?.close();
    throw explained(error, path);
  }
}

/** Returns whether all findings are about indexes that may be rebuilt. */
function areOnlyIndexes(db: DatabaseSync, findings: readonly string[]): boolean {
  const tableOf = db.prepare("select tbl_name from sqlite_schema where type = 'index' and name = ?");
  return findings.every((it) => {
    const index = INDEX_FINDING.exec(it)?.groups?.index;
    return index !== undefined && REINDEXED_TABLES.includes(String(tableOf.get(index)?.tbl_name));
  });
}

/** Rebuilds the indexes. Throws ConfigError when two rows have the same key. */
function reindex(db: DatabaseSync, path: string): void {
  try {
    db.exec('REINDEX');
  } catch (error) {
    throw codeOf(error) === CONSTRAINT ? damaged(path, reasonOf(error)) : error;
  }
}

/** Returns the problems in the pages of a file. Empty if there are none. */
function findingsIn(db: DatabaseSync): string[] {
  const found = db.prepare(`PRAGMA integrity_check(${FINDINGS_MAX})`).all();
  const texts = found.map((it) => String(Object.values(it)[0]).replace(/^\*\*\*.*\n/, ''));
  return texts[0] === 'ok' ? [] : texts;
}

/** Lets only the owner read the store, because it holds secrets. SQLite gives its further files the same mode. */
function restrictPermissions(path: string): void {
  // Opening and closing an existing file would release the locks that this process holds on it.
  if (sizeOf(path) !== undefined) chmodSync(path, OWNER_ONLY);
  else closeSync(openSync(path, 'a', OWNER_ONLY));
}

/** Throws ConfigError for anything but a file. If one of its files were a FIFO, SQLite would wait without end. */
function refuseOther(path: string): void {
  try {
    assertFile(path);
  } catch (error) {
    if (!(error instanceof NotAFileError)) throw error;
    const what = `dataDir: the store ${path} cannot be opened: it is ${error.what}, expected a file`;
    throw new ConfigError(what, 'move it away, and restore the file of the store');
  }
}

/** Throws ConfigError when only the write-ahead log of a store is left. */
function refuseOrphanWal(path: string, log: Logger): void {
  const size = sizeOf(path);
  if (size !== undefined && size > 0) return;
  const wal = walOf(path);
  // SQLite would delete the log, with the newest payments in it.
  if ((sizeOf(wal) ?? 0) > 0) {
    const what = `dataDir: the store ${path} is ${size === undefined ? 'gone' : 'empty'}, but ${wal} is left of it`;
    throw new ConfigError(
      what,
      `restore a copy of both, or move ${wal} away to begin with a new store; nothing is deleted`,
    );
  }
  if (size === 0) log.warn('store-created', { file: path, reason: 'the file was empty: a new store begins' });
}

/** Adapts `node:sqlite` to Kysely's SqliteDialect. */
function adaptDatabase(db: DatabaseSync, path: string, beginCommit: () => void): SqliteDatabase {
  const prepared = new Map<string, SqliteStatement>();
  return {
    prepare: (sql) => {
      // On a full disk SQLite has already rolled back, and refuses a second rollback.
      if (sql === 'rollback' && !db.isTransaction) return NO_OPERATION;
      // A write into a deleted file would be acknowledged, and lost when the process ends.
      if (sql === 'commit' || !(db.isTransaction || sql.startsWith('select'))) beginCommit();
      const known = prepared.get(sql);
      if (known !== undefined) return known;
      const statement = adapt(
        orExplained(path, () => db.prepare(sql)),
        path,
      );
      if (prepared.size < STATEMENTS_MAX) prepared.set(sql, statement);
      return statement;
    },
    close: () => {
      prepared.clear();
      db.close();
    },
  };
}

const NO_OPERATION: SqliteStatement = {
  reader: false,
  all: () => [],
  run: () => ({ changes: 0, lastInsertRowid: 0 }),
  iterate: () => [][Symbol.iterator](),
};

function adapt(statement: StatementSync, path: string): SqliteStatement {
  const inputs = (parameters: readonly unknown[]) => parameters as SQLInputValue[];
  return {
    reader: statement.columns().length > 0,
    all: (parameters) => orExplained(path, () => statement.all(...inputs(parameters))),
    run: (parameters) => orExplained(path, () => statement.run(...inputs(parameters))),
    iterate: (parameters) => statement.iterate(...inputs(parameters)),
  };
}

function orExplained<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw explained(error, path);
  }
}

/** Returns the primary result code of an error of SQLite. */
function codeOf(error: unknown): number | undefined {
  return error instanceof Error && 'errcode' in error ? Number(error.errcode) & 0xff : undefined;
}

/** Adds advice to an error of SQLite where possible. */
function explained(error: unknown, path: string): unknown {
  const code = codeOf(error);
  if (!(error instanceof Error) || code === undefined) return error;
  if (code === BUSY) {
    const fix = 'stop the other gateway, or give this one a folder of its own (`--data` of `paybox up`)';
    return new ConfigError(`dataDir: another gateway uses the store ${path}`, fix);
  }
  const isDamaged = DAMAGED.includes(code) || error.message === 'unsupported file format';
  return isDamaged ? damaged(path, reasonOf(error)) : error;
}

/** Returns the refusal of a start whose store file is damaged. */
export function damaged(path: string, reason: string): ConfigError {
  return new ConfigError(
    `dataDir: the store ${path} is damaged: ${reason.slice(0, REASON_CHARS_MAX)}`,
    `restore a copy, or move it away, and ${walOf(path)} with it, to begin with a new store; nothing is deleted`,
  );
}

function replaced(file: string): PayboxError {
  const what = `the store ${file} was deleted, emptied, moved or replaced while it is open`;
  const fix = 'put it back as it was, or restart the gateway, which then uses what it finds there';
  // The fix is in the message too, because the log shows only the message.
  return new PayboxError('STORAGE_FAULT', `${what}: ${fix}`, { severity: 'fatal', fix });
}

function walOf(path: string): string {
  return `${path}-wal`;
}

function sizeOf(file: string): number | undefined {
  return statSync(file, { throwIfNoEntry: false })?.size;
}

/** Returns the identity of a file. Empty for a missing file and for an empty database. */
function inodeOf(file: string): string {
  const stat = statSync(file, { throwIfNoEntry: false });
  return stat === undefined || (stat.size === 0 && !file.endsWith('-wal')) ? '' : `${stat.dev}:${stat.ino}`;
}
