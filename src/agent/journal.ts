import { mkdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { type Entry, entry } from '../box/entry.ts';
import type { Clock } from '../lib/clock.ts';
import { PayboxError, reasonOf, systemCodeOf } from '../lib/errors.ts';
import type { Logger } from '../lib/log.ts';
import { issuesOf } from '../protocol/codec.ts';
import type { Journal } from './contract.ts';
import { entriesToKeep } from './journal-compaction.ts';

export interface JournalDeps {
  clock: Clock;
  log: Logger;
}

/** The journal's file in the box's data folder. */
export const JOURNAL_FILE = 'journal.db';

/** A journal with more entries than this is compacted when it is loaded, with twice as many also while the box runs. */
const COMPACT_AFTER_ENTRIES = 4_000;
/** Version of the table; in `user_version` of the file. */
const FORMAT_VERSION = 1;
/** How long another program's lock is waited for; the box stands still meanwhile. */
const LOCK_WAIT_MS = 250;
/** Result codes of SQLite for a file whose content is damaged: SQLITE_CORRUPT, SQLITE_NOTADB. */
const DAMAGE_CODES: readonly unknown[] = [11, 26];
/** Result codes of SQLite for a file that another program holds: SQLITE_BUSY, SQLITE_BUSY_RECOVERY. */
const BUSY_CODES: readonly unknown[] = [5, 261];

interface Row {
  seq: number;
  entry: Entry | undefined;
  reason: string;
}

/** An open database with its statements prepared, so that the first append is as fast as the others. */
interface Store {
  db: DatabaseSync;
  insert: StatementSync;
  entries: number;
}

/**
 * The journal of the box `terminalCode` in `dataDir`, which is made if it is missing (house rule 2). A file that is
 * damaged or another box's is set aside under a new name and a fresh one begins. A disk that does not work, or a file
 * that another program has open, is no error here: the box still has to take payments (PROTOCOL.md, clause AGT-5).
 * `load` is then empty, and each `append` tries anew.
 */
export function openJournal(dataDir: string, terminalCode: string, deps: JournalDeps): Journal {
  const journal = new SqliteJournal(dataDir, terminalCode, deps);
  journal.openOrLog();
  return journal;
}

class SqliteJournal implements Journal {
  readonly #file: string;
  readonly #folder: string;
  readonly #terminalCode: string;
  readonly #deps: JournalDeps;
  #store: Store | undefined;

  constructor(folder: string, terminalCode: string, deps: JournalDeps) {
    this.#file = join(folder, JOURNAL_FILE);
    this.#folder = folder;
    this.#terminalCode = terminalCode;
    this.#deps = deps;
  }

  openOrLog(): void {
    try {
      this.#opened();
    } catch (error) {
      this.#deps.log.error('journal-unavailable', { file: this.#file, reason: reasonOf(error) });
    }
  }

  load(): Entry[] {
    if (this.#store === undefined) return [];
    const rows = readRows(this.#store.db);
    for (const { seq, reason } of rows.filter((row) => row.entry === undefined)) {
      this.#deps.log.error('journal-entry-skipped', { seq, reason });
    }
    if (rows.length > COMPACT_AFTER_ENTRIES) this.#compact(this.#store, rows);
    return rows.flatMap((row) => row.entry ?? []);
  }

  async append(entries: readonly Entry[]): Promise<void> {
    try {
      write(this.#opened(), entries);
    } catch (error) {
      this.close();
      throw new PayboxError('STORAGE_FAULT', `the journal ${this.#file} cannot be written: ${reasonOf(error)}`, {
        severity: 'retryable',
        fix:
          error instanceof BusyError
            ? 'end the other program, or give each box a folder of its own'
            : 'check the disk: free space, write permission, its health',
        cause: error,
      });
    }
    const store = this.#store;
    if (store !== undefined && store.entries > 2 * COMPACT_AFTER_ENTRIES) this.#compact(store, readRows(store.db));
  }

  close(): void {
    const { db } = this.#store ?? {};
    this.#store = undefined;
    try {
      db?.close();
    } catch (error) {
      this.#deps.log.error('journal-close-failed', { reason: reasonOf(error) });
    }
  }

  /** A compaction that fails costs room and nothing else. */
  #compact(store: Store, rows: readonly Row[]): void {
    try {
      compact(store, rows);
    } catch (error) {
      this.#deps.log.warn('journal-compaction-failed', { reason: reasonOf(error) });
    }
  }

  #opened(): Store {
    this.#store ??= this.#openOrSetAside();
    return this.#store;
  }

  #openOrSetAside(): Store {
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    try {
      return openStore(this.#file, this.#terminalCode);
    } catch (error) {
      if (error instanceof AnothersError) {
        const setAsideAs = this.#setAside('another-box');
        this.#deps.log.error('journal-of-another-box', { terminalCode: error.owner, file: this.#file, setAsideAs });
      } else if (isDamage(error)) {
        const setAsideAs = this.#setAside('damaged');
        this.#deps.log.error('journal-damaged', { file: this.#file, setAsideAs, reason: reasonOf(error) });
      } else if (hasCode(error, BUSY_CODES)) {
        throw new BusyError('another program has the journal open', { cause: error });
      } else {
        throw error;
      }
      return openStore(this.#file, this.#terminalCode);
    }
  }

  #setAside(why: string): string {
    const time = new Date(this.#deps.clock.wallMs()).toISOString().replaceAll(/[:.]/g, '-');
    const aside = `${this.#file}.${why}-${time}`;
    for (const suffix of ['', '-wal', '-shm']) moveIfThere(this.#file + suffix, aside + suffix);
    return aside;
  }
}

class BusyError extends Error {}

class DamagedError extends Error {}

class AnothersError extends Error {
  readonly owner: string;

  constructor(owner: string) {
    super(`it is the journal of ${owner}`);
    this.owner = owner;
  }
}

function isDamage(error: unknown): boolean {
  return error instanceof DamagedError || hasCode(error, DAMAGE_CODES);
}

function hasCode(error: unknown, codes: readonly unknown[]): boolean {
  return error instanceof Error && 'errcode' in error && codes.includes(error.errcode);
}

function openStore(file: string, terminalCode: string): Store {
  const db = new DatabaseSync(file, { timeout: LOCK_WAIT_MS });
  try {
    // Two boxes that share a journal would show and report each other's orders.
    db.exec('PRAGMA locking_mode = EXCLUSIVE');
    // A commit is on the disk, not merely on its way there, when it returns.
    db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL');
    const check = db.prepare('PRAGMA quick_check(1)').get()?.quick_check;
    if (check !== 'ok') throw new DamagedError(String(check));
    const version = db.prepare('PRAGMA user_version').get()?.user_version;
    if (version !== 0 && version !== FORMAT_VERSION) {
      throw new Error(`its format is version ${version}, this program writes version ${FORMAT_VERSION}`);
    }
    db.exec(
      `CREATE TABLE IF NOT EXISTS entries (seq INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, json TEXT NOT NULL) STRICT;
       CREATE TABLE IF NOT EXISTS owner (terminalCode TEXT NOT NULL) STRICT;
       PRAGMA user_version = ${FORMAT_VERSION}`,
    );
    claim(db, terminalCode);
    const insert = db.prepare('INSERT INTO entries (kind, json) VALUES (?, ?)');
    db.exec('BEGIN IMMEDIATE');
    insert.run('', '');
    db.exec('ROLLBACK');
    return { db, insert, entries: Number(db.prepare('SELECT count(*) AS n FROM entries').get()?.n) };
  } catch (error) {
    db.close();
    throw error;
  }
}

/** A new file becomes this box's, for good. */
function claim(db: DatabaseSync, terminalCode: string): void {
  db.prepare('INSERT INTO owner SELECT ? WHERE NOT EXISTS (SELECT 1 FROM owner)').run(terminalCode);
  const owner = String(db.prepare('SELECT terminalCode FROM owner').get()?.terminalCode);
  if (owner !== terminalCode) throw new AnothersError(owner);
}

function write(store: Store, entries: readonly Entry[]): void {
  transaction(store.db, () => {
    for (const entry of entries) store.insert.run(entry.kind, JSON.stringify(entry));
  });
  store.entries += entries.length;
}

/** Deletes what the box does not need any more; what does not decode goes too, `load` has named it. */
function compact(store: Store, rows: readonly Row[]): void {
  const decoded = rows.flatMap(({ seq, entry }) => (entry === undefined ? [] : [{ seq, entry }]));
  const kept = entriesToKeep(decoded.map((row) => row.entry));
  const keptSeqs = new Set([...kept].map((index) => decoded[index]?.seq));
  const remove = store.db.prepare('DELETE FROM entries WHERE seq = ?');
  transaction(store.db, () => {
    for (const { seq } of rows) if (!keptSeqs.has(seq)) remove.run(seq);
  });
  store.entries = keptSeqs.size;
}

function transaction(db: DatabaseSync, work: () => void): void {
  db.exec('BEGIN IMMEDIATE');
  try {
    work();
    db.exec('COMMIT');
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK');
    throw error;
  }
}

function readRows(db: DatabaseSync): Row[] {
  const rows: Row[] = [];
  for (const { seq, json } of db.prepare('SELECT seq, json FROM entries ORDER BY seq').iterate()) {
    rows.push({ seq: Number(seq), ...decode(String(json)) });
  }
  return rows;
}

function decode(json: string): Omit<Row, 'seq'> {
  try {
    const parsed = entry.safeParse(JSON.parse(json));
    if (parsed.success) return { entry: parsed.data, reason: '' };
    return { entry: undefined, reason: issuesOf(parsed.error) };
  } catch {
    return { entry: undefined, reason: 'not JSON' };
  }
}

function moveIfThere(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch (error) {
    if (systemCodeOf(error) !== 'ENOENT') throw error;
  }
}
