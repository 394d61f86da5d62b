import { closeSync, constants, fstatSync, openSync, renameSync, writeSync } from 'node:fs';
import { Writable } from 'node:stream';
import { reasonOf } from '../../lib/errors.ts';
import { assertMayGive } from '../../lib/given-files.ts';

/** The file opens at once, even a FIFO that nobody reads. */
const APPEND = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK;
const OWNER_ONLY = 0o600;
/** A log of this size is rotated. */
const LOG_BYTES_MAX = 10_000_000;

/**
 * Writes a log file for its owner only, and rotates it to `{file}.1` when full; there are never more than these two. It
 * never rotates a device. It writes lines synchronously, so that the last line before the end is not lost. A line that
 * cannot be written is lost; `complain` is called when that begins.
 */
export class LogFile extends Writable {
  readonly #file: string;
  readonly #complain: (reason: string) => void;
  readonly #bytesMax: number;
  #open: { descriptor: number; bytes: number; isFile: boolean } | undefined;
  #failing = false;

  constructor(file: string, complain: (reason: string) => void, bytesMax = LOG_BYTES_MAX) {
    super();
    this.#file = file;
    this.#complain = complain;
    this.#bytesMax = bytesMax;
  }

  override _write(line: Buffer, _encoding: string, done: () => void): void {
    try {
      this.#append(line);
      this.#failing = false;
    } catch (error) {
      if (!this.#failing) this.#complain(reasonOf(error));
      this.#failing = true;
    }
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#close();
    done(error);
  }

  #append(line: Buffer): void {
    let open = this.#opened();
    if (open.isFile && open.bytes > 0 && open.bytes + line.length > this.#bytesMax) {
      this.#close();
      renameSync(this.#file, `${this.#file}.1`);
      open = this.#opened();
    }
    open.bytes += writeSync(open.descriptor, line);
  }

  #opened(): { descriptor: number; bytes: number; isFile: boolean } {
    if (this.#open === undefined) {
      assertMayGive(this.#file);
      const descriptor = openSync(this.#file, APPEND, OWNER_ONLY);
      const stats = fstatSync(descriptor);
      this.#open = { descriptor, bytes: stats.size, isFile: stats.isFile() };
    }
    return this.#open;
  }

  #close(): void {
    if (this.#open !== undefined) closeSync(this.#open.descriptor);
    this.#open = undefined;
  }
}
