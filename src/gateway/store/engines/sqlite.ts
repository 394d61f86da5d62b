import { chmodSync, closeSync, openSync, statSync } from 'node:fs';
import { backup, DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import {
  type Dialect,
  type DialectAdapter,
  SqliteAdapter,
  type SqliteDatabase,
  SqliteDialect,
  type SqliteStatement,
} from 'kysely';
import { ConfigError, PayboxError, reasonOf } from '../../../lib/errors.ts';
import type { Logger } from '../../../lib/log.ts';
import { CHECKED_TABLES, CHECKSUM_FUNCTION, checksumOf } from '../integrity/checksums.ts';

/** Statements kept prepared; the queries of the store are fewer. */
const STATEMENTS_MAX = 200;
/** SQLite tells the whole text of a trigger that it cannot read. */
const REASON_CHARS_MAX = 300;
const OWNER_ONLY = 0o600;
/** Of a backup: queries wait for the copy of so many, about a millisecond. */
const PAGES_AT_ONCE = 100;

/** What SQLite is to find wrong before it looks no further, and what of it is told. */
const FINDINGS_MAX = 10_000;
const NAMED_MAX = 10;
/** Where a row and its index differ, the row itself may be the damaged one: in settings or secrets nobody would find it. */
const REBUILT: readonly string[] = [...CHECKED_TABLES, 'callback_attempts', 'qr_codes', 'known_logins'];
/** That an index is not as its table says, which has what it is made from. */
const OF_INDEX = /^(row \d+ missing from index|wrong # of entries in index) (?<index>\S+)$/;

/** Primary result codes of SQLite. */
const BUSY = 5;
const CONSTRAINT = 19;
const DAMAGED = [11, 24, 26];

/** A database in a file. */
export interface SqliteFile {
  /** Opens the file at the first query, which throws ConfigError when it is damaged or another gateway's. */
  dialect: Dialect;
  /** Throws PayboxError when a restart would not find what is kept, which is then not written either. */
  assertInPlace(): void;
  /** Copies it as it stands, beside what reads and writes it meanwhile. */
  copyTo(file: string): Promise<void>;
}

/** The SQLite file at this path, which is made. */
export function sqliteFile(path: string, log: Logger): SqliteFile {
  let files: ReadonlyMap<string, string> = new Map();
  const holdInPlace = () => {
    for (const [file, inode] of files) if (inodeOf(file) !== inode) throw gone(file);
  };
  let opened: DatabaseSync | undefined;
  const open = () => {
    const db = openSqlite(path, log);
    opened = db;
    files = new Map([path, walOf(path)].map((file) => [file, inodeOf(file)]));
    return adaptDatabase(db, path, holdInPlace);
  };
  const copyTo = async (file: string) => {
    holdInPlace();
    if (opened === undefined) throw new Error(`the store ${path} is not open`);
    await backup(opened, file, { rate: PAGES_AT_ONCE });
  };
  return {
    dialect: new TransactionalSqliteDialect({ database: async () => open() }),
    assertInPlace: holdInPlace,
    copyTo,
  };
}

/** A SQLite file that nobody uses, to be read as it is: nothing is made beside it, and no log that lies there is believed. */
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

/** An empty database that is on no disk. */
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

/** What a start on this file failed with, as a person is told: that it is damaged, or cannot be opened or written. */
export function sqliteProblem(path: string, error: unknown): Error {
  if (error instanceof ConfigError) return error;
  // With its schema damaged, SQLite knows a column or a table no longer.
  if (/^no such (column|table)/.test(reasonOf(error))) return damaged(path, reasonOf(error));
  return new ConfigError(
    `dataDir: the store ${path} cannot be opened: ${reasonOf(error)}`,
    'use a folder that this user can write, on a disk with room',
  );
}

/** SQLite, whose migrations are made whole or not at all: one that is killed midway is made anew by the next start. */
class TransactionalSqliteDialect extends SqliteDialect {
  override createAdapter(): DialectAdapter {
    return new TransactionalAdapter();
  }
}

class TransactionalAdapter extends SqliteAdapter {
  override get supportsTransactionalDdl(): boolean {
    return true;
  }
}

function openSqlite(path: string, log: Logger): DatabaseSync {
  refuseOrphanWal(path, log);
  let db: DatabaseSync | undefined;
  try {
    restrictPermissions(path);
    db = new DatabaseSync(path);
    addChecksum(db);
    // Alone on the file: two gateways on one folder would tell the same payments twice.
    // FULL: what a partner or a box was answered must survive a power cut.
    db.exec(
      'PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 200',
    );
    // A page that is damaged would fail the one call that meets it, for ever. Takes about 3 ms per MB.
    let findings = findingsIn(db);
    if (findings.length > 0 && areOfIndexes(db, findings)) {
      reindex(db, path);
      log.warn('store-index-rebuilt', { file: path, reason: findings.slice(0, NAMED_MAX).join('; ') });
      findings = findingsIn(db);
    }
    if (findings[0] !== undefined) throw damaged(path, findings[0]);
    return db;
  } catch (error) {
    db?.close();
    throw named(error, path);
  }
}

/** Whether nothing is damaged but indexes, of tables whose rows are checked anew, or of which none matters alone. */
function areOfIndexes(db: DatabaseSync, findings: readonly string[]): boolean {
  const tableOf = db.prepare("select tbl_name from sqlite_schema where type = 'index' and name = ?");
  return findings.every((it) => {
    const index = OF_INDEX.exec(it)?.groups?.index;
    return index !== undefined && REBUILT.includes(String(tableOf.get(index)?.tbl_name));
  });
}

/** Throws ConfigError where no index fits the rows: two of them have one key. */
function reindex(db: DatabaseSync, path: string): void {
  try {
    db.exec('REINDEX');
  } catch (error) {
    throw codeOf(error) === CONSTRAINT ? damaged(path, reasonOf(error)) : error;
  }
}

/** What is wrong with the pages of a file; empty when all is well. */
function findingsIn(db: DatabaseSync): string[] {
  const found = db.prepare(`PRAGMA integrity_check(${FINDINGS_MAX})`).all();
  const texts = found.map((it) => String(Object.values(it)[0]).replace(/^\*\*\*.*\n/, ''));
  return texts[0] === 'ok' ? [] : texts;
}

/** It holds what boxes and partners prove themselves with; the files beside it get the rights of this one. */
function restrictPermissions(path: string): void {
  // Closing a file that is there would end the locks that this process has on it.
  if (sizeOf(path) !== undefined) chmodSync(path, OWNER_ONLY);
  else closeSync(openSync(path, 'a', OWNER_ONLY));
}

/** Throws ConfigError where a new store would be the end of what is left of an older one. */
function refuseOrphanWal(path: string, log: Logger): void {
  const size = sizeOf(path);
  if (size !== undefined && size > 0) return;
  const wal = walOf(path);
  // SQLite would delete it, with the newest payments in it.
  if ((sizeOf(wal) ?? 0) > 0) {
    const what = `dataDir: the store ${path} is ${size === undefined ? 'gone' : 'empty'}, but ${wal} is left of it`;
    throw new ConfigError(what, `restore a copy of both, or move ${wal} away to begin anew; nothing is deleted`);
  }
  if (size === 0) log.warn('store-new', { file: path, reason: 'the file was empty: the store begins anew' });
}

/** `node:sqlite` in the shape that Kysely's SqliteDialect asks for. */
function adaptDatabase(db: DatabaseSync, path: string, holdInPlace: () => void): SqliteDatabase {
  const prepared = new Map<string, SqliteStatement>();
  return {
    prepare: (sql) => {
      // After a full disk SQLite has rolled back by itself, and refuses to do so again.
      if (sql === 'rollback' && !db.isTransaction) return NOTHING;
      // What goes into a file that was deleted would be acknowledged, and lost with the process.
      if (sql === 'commit' || !(db.isTransaction || sql.startsWith('select'))) holdInPlace();
      const known = prepared.get(sql);
      if (known !== undefined) return known;
      const statement = adapt(
        orNamed(path, () => db.prepare(sql)),
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

const NOTHING: SqliteStatement = {
  reader: false,
  all: () => [],
  run: () => ({ changes: 0, lastInsertRowid: 0 }),
  iterate: () => [][Symbol.iterator](),
};

function adapt(statement: StatementSync, path: string): SqliteStatement {
  const inputs = (parameters: readonly unknown[]) => parameters as SQLInputValue[];
  return {
    reader: statement.columns().length > 0,
    all: (parameters) => orNamed(path, () => statement.all(...inputs(parameters))),
    run: (parameters) => orNamed(path, () => statement.run(...inputs(parameters))),
    iterate: (parameters) => statement.iterate(...inputs(parameters)),
  };
}

function orNamed<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw named(error, path);
  }
}

/** Primary result code of what SQLite threw. */
function codeOf(error: unknown): number | undefined {
  return error instanceof Error && 'errcode' in error ? Number(error.errcode) & 0xff : undefined;
}

/** What an error of SQLite means for the file, where that is more than its own words say. */
function named(error: unknown, path: string): unknown {
  const code = codeOf(error);
  if (!(error instanceof Error) || code === undefined) return error;
  if (code === BUSY) {
    const fix = 'stop the other gateway, or give this one a folder of its own';
    return new ConfigError(`dataDir: another gateway uses the store ${path}`, fix);
  }
  const isDamaged = DAMAGED.includes(code) || error.message === 'unsupported file format';
  return isDamaged ? damaged(path, reasonOf(error)) : error;
}

function damaged(path: string, reason: string): ConfigError {
  return new ConfigError(
    `dataDir: the store ${path} is damaged: ${reason.slice(0, REASON_CHARS_MAX)}`,
    `restore a copy, or move it away, and ${walOf(path)} with it, to begin anew; nothing is deleted`,
  );
}

function gone(file: string): PayboxError {
  const what = `the store ${file} was deleted, emptied, moved or replaced while it is open`;
  const fix = 'put it back as it was, or restart the gateway, which then has what it finds there';
  // The log has no other place for what to do.
  return new PayboxError('STORAGE_FAULT', `${what}: ${fix}`, { severity: 'fatal', fix });
}

function walOf(path: string): string {
  return `${path}-wal`;
}

function sizeOf(file: string): number | undefined {
  return statSync(file, { throwIfNoEntry: false })?.size;
}

/** Empty for what is not there, and for a database without its first page. */
function inodeOf(file: string): string {
  const stat = statSync(file, { throwIfNoEntry: false });
  return stat === undefined || (stat.size === 0 && !file.endsWith('-wal')) ? '' : `${stat.dev}:${stat.ino}`;
}
