import {
  closeSync,
  existsSync,
  fchownSync,
  fdatasyncSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { reasonOf } from '../../../lib/errors.ts';
import type { Logger } from '../../../lib/log.ts';
import type { LedgerHead } from './ledger.ts';

/** Where a store is. */
export interface StoreLocation {
  dataDir: string;
  databaseUrl?: string | undefined;
}

const OWNER_ONLY = 0o600;
/** Two lines of the same length, written in turn: one that a power cut tears leaves the other. */
const LINE_BYTES = 128;
const LINES = 2;
const NO_LINK = '-';

/** Where the mark of the store in this folder is, or of that PostgreSQL database. */
export function highWaterMarkFile(place: StoreLocation): string {
  return `${besideStore(place)}.mark`;
}

/** The file with which an owner accepts a loss of that store (PROTOCOL.md, clause STO-3). */
export function acceptLossFile(place: StoreLocation): string {
  return `${besideStore(place)}.accept-loss`;
}

function besideStore({ dataDir, databaseUrl }: StoreLocation): string {
  if (databaseUrl === undefined) return join(dataDir, 'gateway');
  const database = new URL(databaseUrl).pathname.slice(1);
  return join(dataDir, `gateway-${database.replaceAll(/[^\w-]/g, '_')}`);
}

/** How far the ledger went by the mark; `undefined` without a mark. */
export function readHighWaterMark(file: string): LedgerHead | 'damaged' | undefined {
  if (!existsSync(file)) return undefined;
  const text = readFileSync(file, 'latin1');
  const ends = [0, 1].flatMap((n) => endIn(text.slice(n * LINE_BYTES, (n + 1) * LINE_BYTES)) ?? []);
  const [first, second = first] = ends;
  if (first !== undefined && second !== undefined) return second.seq > first.seq ? second : first;
  return 'damaged';
}

/**
 * Makes the mark anew, on the disk, as it stands beside a store whose ledger ends there; root gives it to the owner. Returns
 * its descriptor, which the caller closes. Throws what the disk says.
 */
export function writeHighWaterMark(file: string, end: LedgerHead, owner?: { uid: number; gid: number }): number {
  const fresh = `${file}.new`;
  rmSync(fresh, { force: true });
  // Never a file or a link that is there: it may be a trap of the user whose folder this is.
  const fd = openSync(fresh, 'wx', OWNER_ONLY);
  try {
    if (owner !== undefined && process.getuid?.() === 0) fchownSync(fd, owner.uid, owner.gid);
    writeSync(fd, lineOf(end).repeat(LINES), 0, 'latin1');
    fsyncSync(fd);
    renameSync(fresh, file);
    return fd;
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

/**
 * The mark of an open store. It moves on with every payment, after its commit and before anybody is told of it, without
 * waiting for the disk: what is lost with a process is found by it at the next start, and after a power cut what was on the disk.
 */
export class HighWaterMark {
  /** Undefined once it is closed: the number may be that of another file by then. */
  #fd: number | undefined;
  readonly #file: string;
  readonly #log: Logger;
  #newest: LedgerHead;
  #line = 0;
  #failed = false;

  /** Makes the mark of a store whose ledger ends there. Throws what the disk says. */
  constructor(file: string, end: LedgerHead, log: Logger) {
    this.#fd = writeHighWaterMark(file, end);
    this.#file = file;
    this.#newest = end;
    this.#log = log;
  }

  /** A disk that does not take it keeps no payment back; the log says so once. */
  move(end: LedgerHead): void {
    const fd = this.#fd;
    if (fd === undefined || end.seq <= this.#newest.seq) return;
    this.#newest = end;
    this.#try(() => writeSync(fd, lineOf(end), this.#line * LINE_BYTES, 'latin1'));
    this.#line = (this.#line + 1) % LINES;
  }

  /** On the disk once this returns. */
  close(): void {
    const fd = this.#fd;
    if (fd === undefined) return;
    this.#fd = undefined;
    this.#try(() => fdatasyncSync(fd));
    closeSync(fd);
  }

  #try(work: () => void): void {
    try {
      work();
      this.#failed = false;
    } catch (error) {
      if (!this.#failed) this.#log.warn('mark-not-written', { file: this.#file, reason: reasonOf(error) });
      this.#failed = true;
    }
  }
}

function lineOf({ seq, link }: LedgerHead): string {
  const text = `${seq} ${link || NO_LINK}`;
  return `${`${text} ${crc32(text)}`.padEnd(LINE_BYTES - 1)}\n`;
}

function endIn(line: string): LedgerHead | undefined {
  const found = /^((\d{1,16}) (-|[\da-f]{64})) (\d+) *\n$/.exec(line);
  if (found === null) return undefined;
  const [, text = '', seq, link = '', crc] = found;
  return crc32(text) === Number(crc) ? { seq: Number(seq), link: link === NO_LINK ? '' : link } : undefined;
}
