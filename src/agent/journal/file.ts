import { accessSync, constants, statSync } from 'node:fs';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { crc32 } from 'node:zlib';
import { type Entry, entry } from '../../box/entry.ts';
import { systemCodeOf } from '../../lib/errors.ts';
import { issuesOf } from '../../protocol/codec.ts';
import { keyOf } from './compaction.ts';

/** Why a file cannot be this box's journal; part of the name under which it is set aside. */
export type UnusableReason = 'damaged' | 'another-box' | 'other-version';

/** The file opens, or is there at least, but is not a journal that this box can go on with. */
export class UnusableError extends Error {
  readonly why: UnusableReason;

  constructor(why: UnusableReason, message: string, cause?: unknown) {
    super(message, { cause });
    this.why = why;
  }
}

/** Another program has the file open. */
export class BusyError extends Error {}

export interface Row {
  seq: number;
  /** Undefined for a row that does not decode. */
  entry: Entry | undefined;
  reason: string;
}

/** Version of the tables; in `user_version` of the file. */
const FORMAT_VERSION = 1;
/** The write-ahead log goes into the main file when it has as many pages, of 4 KiB each. */
const WAL_PAGES_MAX = 128;
/** A write-ahead log that one big transaction has made longer than this is cut. */
const WAL_BYTES_MAX = 1_048_576;
/** Free pages that one `remove` gives back to the disk at most. */
const FREED_PAGES_MAX = 512;
/** As much as the largest entry takes, so that a disk is well only when there is room for any. */
const PROBE_BYTES = 4_096;

const SQLITE = { BUSY: 5, READONLY: 8, FULL: 13 } as const;
/**
 * Primary result codes of SQLite that speak of the machine and not of the file's content: PERM, BUSY, LOCKED, NOMEM,
 * IOERR, FULL, CANTOPEN, PROTOCOL, AUTH.
 */
const MACHINE_CODES: readonly number[] = [3, SQLITE.BUSY, 6, 7, 10, SQLITE.FULL, 14, 15, 23];

/** An open journal with its statements prepared, so that the first append is as fast as the others. */
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
   * Opens the journal of the box `terminalCode`, or makes one, and waits `lockWaitMs` for another program to leave it.
   * Throws UnfitError, BusyError, or what the disk says.
   */
  constructor(path: string, terminalCode: string, lockWaitMs: number) {
    if (statSync(path, { throwIfNoEntry: false })?.isFile() === false)
      throw new UnusableError('damaged', 'it is no file');
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

  /** Whether a restart would not find this file: it was deleted or replaced, or its disk taken away. */
  isGone(): boolean {
    return inodeOf(this.#path) !== this.#inode;
  }

  /** Writes all or none, to the disk; what is there already is not written again. */
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

  /** Throws when the disk cannot take an entry. */
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

/** Whether the disk has no room. */
export function isFull(error: unknown): boolean {
  return primaryCodeOf(error) === SQLITE.FULL;
}

/**
 * Entries that can still be read from a file, whatever its state; those of another box are not. Reads from both ends:
 * what lies between two damaged places is lost. Throws when there is nothing to open.
 */
export function readEntries(location: string | URL, terminalCode: string): Entry[] {
  const db = new DatabaseSync(location, { defensive: false });
  try {
    // Else SQLite reads nothing at all of a file that is shorter than its header says.
    db.exec('PRAGMA writable_schema = ON');
    if (ownerOf(db) !== terminalCode) return [];
    const rows = new Map<number, Row>();
    for (const order of ['ASC', 'DESC'] as const) {
      try {
        for (const row of rowsOf(db, order)) rows.set(row.seq, row);
        break;
      } catch (error) {
        // This is as far as it can be read from here; the other end comes next.
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
    return new DatabaseSync(path, { timeout: lockWaitMs });
  } catch (error) {
    throw named(error, path);
  }
}

/** Sets the file up as a journal of this format, and looks for damage. */
function prepare(db: DatabaseSync): void {
  // Two boxes that share a journal would show and report each other's orders.
  db.exec('PRAGMA locking_mode = EXCLUSIVE');
  const version = db.prepare('PRAGMA user_version').get()?.user_version;
  // Lets compaction give room back to the disk; it has to be said before the file has tables.
  if (version === 0) db.exec('PRAGMA auto_vacuum = INCREMENTAL');
  // A commit is on the disk, not merely on its way there, when it returns.
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
  // Journals of this version were first written without checksums.
  const columns = db.prepare('PRAGMA table_info(entries)').all();
  if (!columns.some(({ name }) => name === 'crc')) db.exec('ALTER TABLE entries ADD COLUMN crc INTEGER');
}

/** A new file becomes this box's, for good. */
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

/** Over the number too: an entry that is found in another's place is none. */
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

/** What an error of SQLite means for the file. */
function named(error: unknown, path: string): unknown {
  const code = primaryCodeOf(error);
  const isOfMachine = code === SQLITE.READONLY || (code !== undefined && MACHINE_CODES.includes(code));
  // SQLite has other words for it, "locked" among them, where it cannot write its log.
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
