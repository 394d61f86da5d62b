import { accessSync, constants, statSync } from 'node:fs';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { crc32 } from 'node:zlib';
import { systemCodeOf } from '../../../lib/errors.ts';
import { NotAFileError } from '../../../lib/files.ts';
import { issuesOf } from '../../../protocol/codec.ts';
import { type Entry, entry } from '../../box/entry.ts';
import { keyOf } from './compaction.ts';
import { preparePlace } from './place.ts';

/** The reason for which a file cannot be this box's journal. It is part of the name of the set-aside file. */
export type UnusableReason = 'damaged' | 'another-box' | 'other-version';

/** Reports that the file exists, but that this box cannot use it as its journal. */
export class UnusableError extends Error {
  readonly why: UnusableReason;

  constructor(why: UnusableReason, message: string, cause?: unknown) {
    super(message, { cause });
    this.why = why;
  }
}

/** Reports that another program has the file open. */
export class BusyError extends Error {}

export interface Row {
  seq: number;
  /** The entry; undefined for a row that cannot be decoded. */
  entry: Entry | undefined;
  reason: string;
}

/** The version of the tables, in `user_version` of the file. */
const FORMAT_VERSION = 1;
/** SQLite writes the write-ahead log into the main file at this many pages of 4 KiB. */
const WAL_PAGES_MAX = 128;
/** SQLite truncates a write-ahead log that grew beyond this in one big transaction. */
const WAL_BYTES_MAX = 1_048_576;
/** One `remove` returns at most this many free pages to the disk. */
const FREED_PAGES_MAX = 512;
/** The size of the largest entry: the disk counts as working only if any entry has room. */
const PROBE_BYTES = 4_096;

const SQLITE = { BUSY: 5, READONLY: 8, FULL: 13 } as const;
/**
 * SQLite's primary result codes for problems of the machine, not of the file's content: PERM, BUSY, LOCKED, NOMEM,
 * IOERR, FULL, CANTOPEN, PROTOCOL, AUTH.
 */
const MACHINE_CODES: readonly number[] = [3, SQLITE.BUSY, 6, 7, 10, SQLITE.FULL, 14, 15, 23];

/** Represents an open journal. It prepares its statements, so that the first append is as fast as later ones. */
export class JournalFile {
  readonly #path: string;
  readonly #inode: string;
  readonly #db: DatabaseSync;
  readonly #insert: StatementSync;
  readonly #seal: StatementSync;
  readonly #remove: StatementSync;
  readonly #keys: Set<string>;
  #rows: Row[];

  /**
   * Opens the journal of the box `terminalCode`, or creates one. Waits up to `lockWaitMs` for another program to close
   * it. Throws UnusableError, BusyError, or the disk's own error.
   */
  constructor(path: string, terminalCode: string, lockWaitMs: number) {
    const db = opened(path, lockWaitMs);
    try {
      prepare(db);
      claim(db, terminalCode);
      this.#insert = db.prepare('INSERT INTO entries (kind, json) VALUES (?, ?)');
      this.#seal = db.prepare('UPDATE entries SET crc = ? WHERE seq = ?');
      this.#remove = db.prepare('DELETE FROM entries WHERE seq = ?');
      db.exec('BEGIN IMMEDIATE');
      this.#insert.run('', '');
      db.exec('ROLLBACK');
      this.#rows = [...rowsOf(db, 'ASC')];
      this.#inode = inodeOf(path);
    } catch (error) {
      db.close();
      throw named(error, path);
    }
    this.#path = path;
    this.#db = db;
    this.#keys = new Set(this.entries().map(keyOf));
  }

  get rows(): readonly Row[] {
    return this.#rows;
  }

  entries(): Entry[] {
    return this.#rows.flatMap((row) => row.entry ?? []);
  }

  has(it: Entry): boolean {
    return this.#keys.has(keyOf(it));
  }

  /**
   * Returns whether a restart would not find this file, because it was deleted or replaced, or its disk was unmounted.
   */
  isGone(): boolean {
    return inodeOf(this.#path) !== this.#inode;
  }

  /** Writes all entries or none, and syncs them. It skips entries that are already there. */
  append(entries: readonly Entry[]): void {
    const missing = new Map(entries.filter((it) => !this.has(it)).map((it) => [keyOf(it), it]));
    if (missing.size === 0) return;
    const rows: Row[] = [];
    this.#transaction(() => {
      for (const it of missing.values()) {
        const json = JSON.stringify(it);
        const seq = Number(this.#insert.run(it.kind, json).lastInsertRowid);
        this.#seal.run(checksumOf(seq, json), seq);
        rows.push({ seq, entry: it, reason: '' });
      }
    });
    this.#rows.push(...rows);
    for (const key of missing.keys()) this.#keys.add(key);
  }

  /** Checks that the disk can store an entry. Throws when it cannot. */
  probe(): void {
    this.#transaction(() => {
      const { lastInsertRowid } = this.#insert.run('probe', 'x'.repeat(PROBE_BYTES));
      this.#remove.run(lastInsertRowid);
    });
  }

  remove(seqs: readonly number[]): void {
    this.#transaction(() => {
      for (const seq of seqs) this.#remove.run(seq);
    });
    const removed = new Set(seqs);
    for (const row of this.#rows) {
      if (row.entry !== undefined && removed.has(row.seq)) this.#keys.delete(keyOf(row.entry));
    }
    this.#rows = this.#rows.filter((row) => !removed.has(row.seq));
    this.#db.exec(`PRAGMA incremental_vacuum(${FREED_PAGES_MAX})`);
  }

  close(): void {
    this.#db.close();
  }

  #transaction(work: () => void): void {
    this.#db.exec('BEGIN IMMEDIATE');
    try {
      work();
      this.#db.exec('COMMIT');
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK');
      throw named(error, this.#path);
    }
  }
}

/** Returns whether the disk has no room. */
export function isFull(error: unknown): boolean {
  return primaryCodeOf(error) === SQLITE.FULL;
}

/**
 * Reads all readable entries of this box from a file in any state. Reads from both ends: entries between two damaged
 * places are lost. Throws when the file cannot be opened.
 */
export function readEntries(location: string | URL, terminalCode: string): Entry[] {
  const db = new DatabaseSync(location, { defensive: false });
  try {
    // Without this SQLite reads nothing from a file that is shorter than its header says.
    db.exec('PRAGMA writable_schema = ON');
    if (ownerOf(db) !== terminalCode) return [];
    const rows = new Map<number, Row>();
    for (const order of ['ASC', 'DESC'] as const) {
      try {
        for (const row of rowsOf(db, order)) rows.set(row.seq, row);
        break;
      } catch (error) {
        // The reader meets the first damage from this end. The other end comes next.
        if (primaryCodeOf(error) === undefined && !(error instanceof RangeError)) throw error;
      }
    }
    const found = new Map<string, Entry>();
    for (const { entry: it } of [...rows.values()].sort((a, b) => a.seq - b.seq)) {
      if (it !== undefined && !found.has(keyOf(it))) found.set(keyOf(it), it);
    }
    return [...found.values()];
  } finally {
    db.close();
  }
}

function opened(path: string, lockWaitMs: number): DatabaseSync {
  try {
    preparePlace(path);
    return new DatabaseSync(path, { timeout: lockWaitMs });
  } catch (error) {
    throw named(error, path);
  }
}

/** Configures the file as a journal of this format, and checks its integrity. */
function prepare(db: DatabaseSync): void {
  // Two boxes that share a journal would show and report each other's orders.
  db.exec('PRAGMA locking_mode = EXCLUSIVE');
  const version = db.prepare('PRAGMA user_version').get()?.user_version;
  // Lets compaction return space to the disk. SQLite accepts this only before the file has tables.
  if (version === 0) db.exec('PRAGMA auto_vacuum = INCREMENTAL');
  // Makes a commit return only when it is synced to the disk.
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL');
  db.exec(`PRAGMA wal_autocheckpoint = ${WAL_PAGES_MAX}; PRAGMA journal_size_limit = ${WAL_BYTES_MAX}`);
  const check = db.prepare('PRAGMA quick_check(1)').get()?.quick_check;
  if (check !== 'ok') throw new UnusableError('damaged', String(check));
  if (version === 0) {
    db.exec(
      `BEGIN IMMEDIATE;
       CREATE TABLE IF NOT EXISTS entries
         (seq INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, json TEXT NOT NULL, crc INTEGER) STRICT;
       CREATE TABLE IF NOT EXISTS owner (terminalCode TEXT NOT NULL) STRICT;
       PRAGMA user_version = ${FORMAT_VERSION};
       COMMIT`,
    );
  } else if (version !== FORMAT_VERSION) {
    const message = `its format is version ${version}, this program writes version ${FORMAT_VERSION}`;
    throw new UnusableError('other-version', message);
  }
  // Early journals of this version have no checksum column.
  const columns = db.prepare('PRAGMA table_info(entries)').all();
  if (!columns.some(({ name }) => name === 'crc')) db.exec('ALTER TABLE entries ADD COLUMN crc INTEGER');
}

/** Marks a new file as this box's. */
function claim(db: DatabaseSync, terminalCode: string): void {
  const owner = ownerOf(db);
  if (owner === undefined) db.prepare('INSERT INTO owner VALUES (?)').run(terminalCode);
  else if (owner !== terminalCode) throw new UnusableError('another-box', `it is the journal of ${owner}`);
}

function ownerOf(db: DatabaseSync): string | undefined {
  const row = db.prepare('SELECT terminalCode FROM owner').get();
  return row === undefined ? undefined : String(row.terminalCode);
}

function* rowsOf(db: DatabaseSync, order: 'ASC' | 'DESC'): Generator<Row> {
  for (const { seq, json, crc } of db.prepare(`SELECT * FROM entries ORDER BY seq ${order}`).iterate()) {
    yield { seq: Number(seq), ...decode(Number(seq), String(json), crc) };
  }
}

/** Returns the checksum of a row. It covers the row number too, which detects an entry in a wrong row. */
function checksumOf(seq: number, json: string): number {
  return crc32(`${seq} ${json}`);
}

function decode(seq: number, json: string, crc: unknown): Omit<Row, 'seq'> {
  if (typeof crc === 'number' && crc !== checksumOf(seq, json))
    return { entry: undefined, reason: 'its checksum is wrong' };
  try {
    const parsed = entry.safeParse(JSON.parse(json));
    if (parsed.success) return { entry: parsed.data, reason: '' };
    return { entry: undefined, reason: issuesOf(parsed.error) };
  } catch {
    return { entry: undefined, reason: 'not JSON' };
  }
}

function inodeOf(path: string): string {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat === undefined ? '' : `${stat.dev}:${stat.ino}`;
}

/** Maps an SQLite error to its meaning for the file. */
function named(error: unknown, path: string): unknown {
  if (error instanceof NotAFileError) return new UnusableError('damaged', error.message, error);
  const code = primaryCodeOf(error);
  const isOfMachine = code === SQLITE.READONLY || (code !== undefined && MACHINE_CODES.includes(code));
  // SQLite reports other errors, such as "locked", if it cannot write its log.
  if (isOfMachine && !isWritable(path)) return new Error('it, or its disk, is read-only', { cause: error });
  if (code === SQLITE.BUSY) return new BusyError('another program has the journal open', { cause: error });
  const isOfContent = code === undefined ? error instanceof RangeError : !MACHINE_CODES.includes(code);
  return isOfContent && error instanceof Error ? new UnusableError('damaged', error.message, error) : error;
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch (error) {
    return systemCodeOf(error) === 'ENOENT';
  }
}

function primaryCodeOf(error: unknown): number | undefined {
  return error instanceof Error && 'errcode' in error && typeof error.errcode === 'number'
    ? error.errcode & 0xff
    : undefined;
}
