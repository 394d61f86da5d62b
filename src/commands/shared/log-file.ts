import { closeSync, fstatSync, openSync, renameSync, writeSync } from 'node:fs';
import { Writable } from 'node:stream';
import { reasonOf } from '../../lib/errors.ts';

/** A log of this size is rotated. */
const LOG_BYTES_MAX = 10_000_000;

/**
 * A log file, rotated to `{file}.1` when full; there are never more than these two. Lines are written synchronously, so
 * that the last line before the end is not lost. A line that cannot be written is lost; `complain` is called when that
 * begins.
 */
export class LogFile extends Writable {
  readonly #file: string;
  readonly #complain: (reason: string) => void;
  readonly #bytesMax: number;
  #open: { descriptor: number; bytes: number } | undefined;
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
    if (open.bytes > 0 && open.bytes + line.length > this.#bytesMax) {
      this.#close();
      renameSync(this.#file, `${this.#file}.1`);
      open = this.#opened();
    }
    open.bytes += writeSync(open.descriptor, line);
  }

  #opened(): { descriptor: number; bytes: number } {
    if (this.#open === undefined) {
      const descriptor = openSync(this.#file, 'a');
      this.#open = { descriptor, bytes: fstatSync(descriptor).size };
    }
    return this.#open;
  }

  #close(): void {
    if (this.#open !== undefined) closeSync(this.#open.descriptor);
    this.#open = undefined;
  }
}
