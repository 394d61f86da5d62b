import { join } from 'node:path';
import type { Clock } from '../../../lib/clock.ts';
import { ConfigError, PayboxError, reasonOf } from '../../../lib/errors.ts';
import { makeFolder } from '../../../lib/folders.ts';
import type { Logger } from '../../../lib/log.ts';
import type { Entry } from '../../box/entry.ts';
import type { Journal, JournalStatus } from '../contract.ts';
import { entriesToKeep, hasAged, keyOf } from './compaction.ts';
import { BusyError, isFull, JournalFile, UnusableError } from './file.ts';
import { namesAside, salvage, setAside } from './set-aside.ts';

/*
 * The memory of a box: what it must still know after a power cut.
 *
 * Theory. The journal is a list of facts in a SQLite file. A restart reads them all and builds the same state, so
 * nothing else on the disk matters to the box.
 *
 * Invariants. Facts are synced before the box shows or reports anything that follows from them. An append writes all its
 * entries or none. A second entry with the same key adds nothing, so every write may be repeated. Compaction removes the
 * oldest entries first, so the rest restores the same box at any moment.
 *
 * Failing disks. A box must accept payments even when its disk fails (PROTOCOL.md, clause AGT-5). `load` then returns
 * the readable entries, and the journal opens the file later. A file that is damaged, of another box or of another
 * version is set aside under a new name, and a new file starts with its readable entries.
 *
 * Tried and failed. A FIFO or a device under the journal's name made a start wait forever, so the journal opens only
 * files.
 */

export interface JournalDeps {
  clock: Clock;
  log: Logger;
}

/** The journal's file in the box's data folder. */
export const JOURNAL_FILE = 'journal.db';

/**
 * A journal with more entries than this is compacted when it is opened. A running box compacts it at twice as many.
 * About twice this number remains if the box has as many unacknowledged reports as it can.
 */
const COMPACT_ABOVE_ENTRIES = 6_000;
/** How often a running box looks for entries that are too old. */
const AGE_CHECK_MS = 86_400_000;
/** One append removes at most this many entries during a compaction, so that no append is slow. */
const REMOVED_AT_ONCE_MAX = 500;
/**
 * The start waits this long for another program, which may just be ending, to close the file. A running box does not
 * wait.
 */
const LOCK_WAIT_MS = 2_000;
const BUSY_FIX = 'end the other program, or give each box a folder of its own';
/**
 * The journal waits this long between attempts to open the file, so that a flood of pushes does not wait for each
 * attempt.
 */
const REOPEN_MS = 1_000;

/**
 * Opens the journal of the box `terminalCode` in `dataDir`, and creates both if they are missing (house rule 2). Throws
 * a ConfigError when another program has the file open. A disk that fails is no error.
 */
export function openJournal(dataDir: string, terminalCode: string, deps: JournalDeps): Journal {
  return new SqliteJournal(dataDir, terminalCode, deps);
}

class SqliteJournal implements Journal {
  readonly #folder: string;
  readonly #path: string;
  readonly #terminalCode: string;
  readonly #deps: JournalDeps;
  #file: JournalFile | undefined;
  /** The entries to write into the next file that opens; empty while a file is open. */
  #memory: Entry[] = [];
  /** Entries found after the start that `reopen` has not returned yet. */
  #unknown: Entry[] = [];
  #started = false;
  #isComplete = false;
  /** The error of the last attempt; undefined after a success. */
  #failure: unknown;
  #setAside: string[] = [];
  #reopenAtMs = Number.NEGATIVE_INFINITY;
  #ageCheckAtMs = Number.NEGATIVE_INFINITY;
  /** The current compaction still has to remove these rows, oldest first. */
  #doomed: readonly number[] = [];

  constructor(folder: string, terminalCode: string, deps: JournalDeps) {
    this.#folder = folder;
    this.#path = join(folder, JOURNAL_FILE);
    this.#terminalCode = terminalCode;
    this.#deps = deps;
    try {
      const file = this.#opened(LOCK_WAIT_MS);
      this.#planCompaction(file, COMPACT_ABOVE_ENTRIES);
      while (this.#doomed.length > 0) this.#compactSome(file);
    } catch (error) {
      // The other program is a second agent of this box. Without the journal, this agent would take over its gateway
      // session.
      if (error instanceof BusyError) throw new ConfigError(`dataDir: ${error.message}: ${this.#path}`, BUSY_FIX);
      this.#failure = error;
      deps.log.error('journal-not-opened', { file: this.#path, reason: reasonOf(error) });
      this.#learn(salvage(this.#path, terminalCode, deps.log));
    }
    this.#started = true;
  }

  load(): Entry[] {
    return this.#file?.entries() ?? this.#memory;
  }

  reopen(): Entry[] {
    try {
      this.#opened(0);
    } catch (error) {
      this.#fail(error);
    }
    return this.#unknown.splice(0);
  }

  async append(entries: readonly Entry[]): Promise<void> {
    try {
      const file = this.#opened(0);
      if (entries.length === 0) file.probe();
      else file.append(entries);
      this.#failure = undefined;
      if (this.#doomed.length === 0) this.#planCompaction(file, 2 * COMPACT_ABOVE_ENTRIES);
      if (this.#doomed.length > 0) this.#compactSome(file);
    } catch (error) {
      this.#fail(error);
      throw new PayboxError('STORAGE_FAULT', `the journal ${this.#path} cannot be written: ${reasonOf(error)}`, {
        severity: 'retryable',
        fix: error instanceof BusyError ? BUSY_FIX : 'check the disk: free space, write permission, its health',
        cause: error,
      });
    }
  }

  status(): JournalStatus {
    const reason = this.#failure === undefined ? null : reasonOf(this.#failure);
    return { ok: reason === null, reason, complete: this.#isComplete, setAside: this.#setAside };
  }

  close(): void {
    const file = this.#file;
    if (file === undefined) return;
    this.#memory = file.entries();
    this.#file = undefined;
    this.#doomed = [];
    try {
      file.close();
    } catch (error) {
      this.#deps.log.error('journal-close-failed', { reason: reasonOf(error) });
    }
  }

  /**
   * Handles a failed write. A full disk leaves the file intact. After any other error the file is reopened and checked.
   */
  #fail(error: unknown): void {
    this.#failure = error;
    if (!isFull(error)) this.close();
  }

  #opened(lockWaitMs: number): JournalFile {
    const { clock, log } = this.#deps;
    if (this.#file?.isGone()) {
      log.error('journal-file-removed', { file: this.#path });
      this.close();
    }
    if (this.#file !== undefined) return this.#file;
    const nowMs = clock.monotonicMs();
    if (this.#failure !== undefined && nowMs < this.#reopenAtMs) throw this.#failure;
    this.#reopenAtMs = nowMs + REOPEN_MS;
    makeFolder(this.#folder, 0o700);
    this.#setAside = namesAside(this.#folder, JOURNAL_FILE);
    const file = this.#openOrSetAside(lockWaitMs);
    // A set-aside file may contain more than could be read, also for later starts.
    const isComplete = file.rows.length > 0 && this.#setAside.length === 0;
    try {
      this.#learn(file.entries());
      file.append(this.#memory);
    } catch (error) {
      file.close();
      throw error;
    }
    this.#memory = [];
    this.#file = file;
    this.#isComplete ||= isComplete;
    this.#logSkipped(file);
    if (this.#started) log.info('journal-opened', { file: this.#path, entries: file.rows.length });
    return file;
  }

  #openOrSetAside(lockWaitMs: number): JournalFile {
    const { clock, log } = this.#deps;
    try {
      if (this.#failure instanceof UnusableError) throw this.#failure;
      return new JournalFile(this.#path, this.#terminalCode, lockWaitMs);
    } catch (error) {
      if (!(error instanceof UnusableError)) throw error;
      const name = setAside(this.#folder, JOURNAL_FILE, error.why, clock.wallMs());
      this.#setAside = namesAside(this.#folder, JOURNAL_FILE);
      this.#failure = undefined;
      const saved = this.#learn(salvage(join(this.#folder, name), this.#terminalCode, log));
      const fields = { file: this.#path, setAsideAs: name, why: error.why, reason: reasonOf(error), saved };
      log.error('journal-set-aside', fields);
      return new JournalFile(this.#path, this.#terminalCode, lockWaitMs);
    }
  }

  /** Adds new entries. Returns their number. */
  #learn(found: readonly Entry[]): number {
    const known = new Set(this.#memory.map(keyOf));
    const fresh = found.filter((entry) => !known.has(keyOf(entry)));
    this.#memory = [...fresh, ...this.#memory];
    if (this.#started) this.#unknown.push(...fresh);
    return fresh.length;
  }

  #logSkipped(file: JournalFile): void {
    const skipped = file.rows.filter((row) => row.entry === undefined);
    const [first] = skipped;
    if (first === undefined) return;
    const seqs = skipped.map((row) => row.seq).join(', ');
    this.#deps.log.error('journal-entries-skipped', { count: skipped.length, seqs, reason: first.reason });
  }

  #planCompaction(file: JournalFile, above: number): void {
    const { clock } = this.#deps;
    const [nowMs, wallMs] = [clock.monotonicMs(), clock.wallMs()];
    const looksForAge = nowMs >= this.#ageCheckAtMs;
    if (looksForAge) this.#ageCheckAtMs = nowMs + AGE_CHECK_MS;
    if (file.rows.length <= above && !(looksForAge && hasAged(file.entries(), wallMs))) return;
    const readable = file.rows.filter((row) => row.entry !== undefined);
    const kept = new Set([...entriesToKeep(file.entries(), wallMs)].map((index) => readable[index]?.seq));
    this.#doomed = file.rows.map((row) => row.seq).filter((seq) => !kept.has(seq));
  }

  /**
   * Removes some entries, the oldest first, so that the rest restores the same box at any moment. A failure costs only
   * disk space.
   */
  #compactSome(file: JournalFile): void {
    const some = this.#doomed.slice(0, REMOVED_AT_ONCE_MAX);
    this.#doomed = this.#doomed.slice(REMOVED_AT_ONCE_MAX);
    try {
      file.remove(some);
    } catch (error) {
      this.#doomed = [];
      this.#deps.log.warn('journal-compaction-failed', { reason: reasonOf(error) });
    }
  }
}
