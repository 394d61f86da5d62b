import { closeSync, openSync, rmSync } from 'node:fs';
import { type FileHandle, open, stat, statfs } from 'node:fs/promises';
import { PayboxError, systemCodeOf } from '../../../lib/errors.ts';

const OWNER_ONLY = 0o600;
/** What a copy leaves to the store, which grows meanwhile. */
const ROOM_LEFT_BYTES_MIN = 16 * 1_048_576;

/** Makes copies of a store that is in use, one at a time. */
export class SnapshotMaker {
  readonly #store: string;
  readonly #copyTo: (file: string) => Promise<void>;
  #isBusy = false;

  constructor(store: string, copyTo: (file: string) => Promise<void>) {
    this.#store = store;
    this.#copyTo = copyTo;
    // Of a gateway that was killed.
    rmSync(this.#copy, { force: true });
  }

  get #copy(): string {
    return `${this.#store}.backup`;
  }

  /**
   * A whole copy, in a file without a name: it is gone once it is closed. Throws PayboxError `NO_BACKUP` where another is
   * being made, or where the copy would take the room that payments need.
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
      throw noBackup(
        `the copy ${copy} cannot be written: ${(error as Error).message}`,
        'make room on that disk',
        error,
      );
    } finally {
      rmSync(copy, { force: true });
      this.#isBusy = false;
    }
  }

  async #assertRoom(): Promise<void> {
    const [{ size }, { bavail, bsize }] = await Promise.all([stat(this.#store), statfs(this.#store)]);
    const missing = size + ROOM_LEFT_BYTES_MIN - bavail * bsize;
    if (missing <= 0) return;
    const what = `the disk of ${this.#store} has no room for a copy of it: ${Math.ceil(missing / 1_048_576)} MiB are missing`;
    throw noBackup(what, 'make room on that disk');
  }
}

/** That there is no backup, and what to do. */
export function noBackup(what: string, fix: string, cause?: unknown): PayboxError {
  return new PayboxError('NO_BACKUP', what, { severity: 'retryable', fix, cause });
}
