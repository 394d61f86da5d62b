import { closeSync, openSync, rmSync } from 'node:fs';
import { type FileHandle, open, stat, statfs } from 'node:fs/promises';
import { PayboxError, reasonOf, systemCodeOf } from '../../lib/errors.ts';

const OWNER_ONLY = 0o600;
const MIB = 1_048_576;
/** Free space that a copy must leave: the store grows meanwhile. */
const ROOM_LEFT_BYTES_MIN = 16 * MIB;

/** Makes copies of a store that is in use, one at a time. */
export class SnapshotMaker {
  readonly #store: string;
  readonly #copyTo: (file: string) => Promise<void>;
  readonly #copy: string;
  #isBusy = false;

  constructor(store: string, copyTo: (file: string) => Promise<void>) {
    this.#store = store;
    this.#copyTo = copyTo;
    this.#copy = `${store}.backup`;
    // A gateway that was killed may have left one.
    rmSync(this.#copy, { force: true });
  }

  /**
   * Makes a complete copy. Its file has no name and is deleted when it is closed. Throws PayboxError `NO_BACKUP` while
   * another one is made, or when too little space would be left for payments.
   */
  async make(): Promise<FileHandle> {
    if (this.#isBusy) throw noBackup('another backup is being made', 'ask again when it is done');
    this.#isBusy = true;
    const copy = this.#copy;
    try {
      await this.#assertRoom();
      rmSync(copy, { force: true });
      closeSync(openSync(copy, 'wx', OWNER_ONLY));
      await this.#copyTo(copy);
      return await open(copy, 'r');
    } catch (error) {
      if (systemCodeOf(error) !== 'ERR_SQLITE_ERROR') throw error;
      throw noBackup(`the copy ${copy} cannot be written: ${reasonOf(error)}`, 'make room on that disk', error);
    } finally {
      rmSync(copy, { force: true });
      this.#isBusy = false;
    }
  }

  async #assertRoom(): Promise<void> {
    const [{ size }, { bavail, bsize }] = await Promise.all([stat(this.#store), statfs(this.#store)]);
    const missing = Math.ceil((size + ROOM_LEFT_BYTES_MIN - bavail * bsize) / MIB);
    if (missing <= 0) return;
    const what = `the disk of ${this.#store} has no room for a copy of it: ${missing} MiB are missing`;
    throw noBackup(what, 'make room on that disk');
  }
}

export function noBackup(what: string, fix: string, cause?: unknown): PayboxError {
  return new PayboxError('NO_BACKUP', what, { severity: 'retryable', fix, cause });
}
