import { closeSync, openSync, rmSync } from 'node:fs';
import { type FileHandle, open, stat, statfs } from 'node:fs/promises';
import { PayboxError, reasonOf, systemCodeOf } from '../../../lib/errors.ts';

const OWNER_ONLY = 0o600;
const MIB = 1_048_576;
/** A copy must leave this much free space, because the store grows meanwhile. */
const ROOM_LEFT_BYTES_MIN = 16 * MIB;

const ATTEMPTS_MAX = 3;
/** SQLITE_OK, SQLITE_BUSY and SQLITE_LOCKED. */
const NO_FAILURE: ReadonlySet<unknown> = new Set([0, 5, 6]);

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
    // A killed gateway may have left a copy.
    rmSync(this.#copy, { force: true });
  }

  /**
   * Makes a complete copy. Its file has no name and is deleted when it is closed. Throws a PayboxError `NO_BACKUP`
   * while another copy is being made, or when too little space would be left for payments.
   */
  async make(): Promise<FileHandle> {
    if (this.#isBusy) throw noBackup('another backup is being made', 'ask again when it is done');
    this.#isBusy = true;
    const copy = this.#copy;
    try {
      await this.#assertRoom();
      await this.#copyAll(copy);
      return await open(copy, 'r');
    } catch (error) {
      if (systemCodeOf(error) !== 'ERR_SQLITE_ERROR') throw error;
      throw noBackup(`the copy ${copy} cannot be written: ${reasonOf(error)}`, 'make room on that disk', error);
    } finally {
      rmSync(copy, { force: true });
      this.#isBusy = false;
    }
  }

  /** Copies the store. Begins again when the engine gave up only because somebody else used the store. */
  async #copyAll(copy: string): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      rmSync(copy, { force: true });
      closeSync(openSync(copy, 'wx', OWNER_ONLY));
      try {
        return await this.#copyTo(copy);
      } catch (error) {
        if (attempt === ATTEMPTS_MAX || !NO_FAILURE.has(errorNumberOf(error))) throw error;
      }
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

/** Returns the engine's number of an error. */
function errorNumberOf(error: unknown): unknown {
  return error instanceof Error && 'errcode' in error ? error.errcode : undefined;
}

export function noBackup(what: string, fix: string, cause?: unknown): PayboxError {
  return new PayboxError('NO_BACKUP', what, { severity: 'retryable', fix, cause });
}
