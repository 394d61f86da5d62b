import { closeSync, fdatasync, openSync } from 'node:fs';
import { promisify } from 'node:util';
import { PayboxError, reasonOf } from '../../../lib/errors.ts';

/** Waits until what was written to this open file is on the disk. */
export type SyncFile = (fd: number) => Promise<void>;

const syncFile: SyncFile = promisify(fdatasync);

/**
 * Makes commits of a SQLite file durable outside the event loop.
 *
 * Theory: SQLite itself would wait for the disk at each commit and block every box meanwhile. Here it only writes a
 * commit to the write-ahead log. One wait for the disk then serves all commits that were written before it began. A
 * commit that is written during a wait needs the next one.
 *
 * Invariants:
 * 1. Nothing is reported before `settled`: until then queries find a commit that the disk may lose.
 * 2. A failed wait is final. The system reports a failed write only once, so a second wait could succeed without the
 * data.
 * 3. A checkpoint syncs the log first, then the database, before anybody writes again: the next commit may overwrite
 * the log.
 * 4. The files are closed after SQLite has closed them, because closing one earlier releases SQLite's locks.
 */
export class WalSync {
  readonly #path: string;
  readonly #database: number;
  readonly #wal: number;
  readonly #sync: SyncFile;
  #written = 0;
  #durable = 0;
  #running: Promise<void> | undefined;
  #failure: PayboxError | undefined;

  /** Opens both files, which SQLite must have made. They stay open until `close`. */
  constructor(path: string, walPath: string, sync: SyncFile = syncFile) {
    this.#path = path;
    this.#sync = sync;
    this.#database = openSync(path, 'r+');
    this.#wal = openSync(walPath, 'r+');
  }

  get commits(): number {
    return this.#written;
  }

  /** Throws once the disk has failed: earlier commits may be missing on it, though queries find them. */
  beginCommit(): void {
    this.assertHealthy();
    this.#written += 1;
  }

  /** Throws once the disk has failed: earlier commits may be missing on it, though queries find them. */
  assertHealthy(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Settles once all present commits are on the disk. Rejects, now and later, when the disk fails. */
  async settled(): Promise<void> {
    const wanted = this.#written;
    while (this.#durable < wanted) {
      this.assertHealthy();
      this.#running ??= this.#syncWal().finally(() => {
        this.#running = undefined;
      });
      await this.#running;
    }
    this.assertHealthy();
  }

  /** Copies the log into the database with `copy`, which must not wait for the disk. Nobody may write meanwhile. */
  async checkpoint(copy: () => void): Promise<void> {
    await this.settled();
    copy();
    await this.#syncOrFail(this.#database);
  }

  /** Closes the files. SQLite must have closed them before. */
  close(): void {
    closeSync(this.#wal);
    closeSync(this.#database);
  }

  async #syncWal(): Promise<void> {
    const written = this.#written;
    await this.#syncOrFail(this.#wal);
    this.#durable = written;
  }

  async #syncOrFail(fd: number): Promise<void> {
    try {
      await this.#sync(fd);
    } catch (error) {
      // A second attempt may succeed although the data is lost: the system reports a failed write only once.
      const what = `the disk did not take what the store ${this.#path} wrote: ${reasonOf(error)}`;
      const fix = 'check the disk, and restart the gateway, which then uses what is on it';
      const failure = { severity: 'fatal', fix, cause: error } as const;
      this.#failure = new PayboxError('STORAGE_FAULT', `${what}: ${fix}`, failure);
      throw this.#failure;
    }
  }
}
