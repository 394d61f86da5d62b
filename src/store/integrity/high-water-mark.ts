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
import { reasonOf } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import type { StoreShard } from '../store-files.ts';
import type { LedgerHead } from './ledger.ts';

export interface StoreLocation {
  dataDir: string;
  databaseUrl?: string | undefined;
  /** One shard of the database, in place of a whole one. */
  shard?: StoreShard | undefined;
}

const OWNER_ONLY = 0o600;
/** The file has two lines of equal length, written in turn: if a power cut damages one, the other is complete. */
const LINE_BYTES = 128;
const LINES = 2;
const NO_LINK = '-';

/** Path of the mark of a store, or of another file of the store with this suffix. */
export function highWaterMarkFile({ dataDir, databaseUrl, shard }: StoreLocation, suffix = '.mark'): string {
  if (databaseUrl === undefined) return join(dataDir, `gateway${suffix}`);
  const database = new URL(databaseUrl).pathname.slice(1).replaceAll(/[^\w-]/g, '_');
  const generation = shard?.generation ? `-${shard.generation}` : '';
  const part = shard === undefined ? '' : `${generation}-shard-${shard.index}`;
  return join(dataDir, `gateway-${database}${part}${suffix}`);
}

/** Path of the file with which an admin accepts a loss of this store (PROTOCOL.md, clause STO-3). */
export function acceptLossFile(location: StoreLocation): string {
  return highWaterMarkFile(location, '.accept-loss');
}

/** Reads the newest payment from the mark; `undefined` without a mark. */
export function readHighWaterMark(file: string): LedgerHead | 'damaged' | undefined {
  if (!existsSync(file)) return undefined;
  const text = readFileSync(file, 'latin1');
  const heads = [0, 1].flatMap((n) => headOf(text.slice(n * LINE_BYTES, (n + 1) * LINE_BYTES)) ?? []);
  return heads.toSorted((a, b) => b.seq - a.seq)[0] ?? 'damaged';
}

/**
 * Replaces the mark durably. Returns its descriptor, which the caller closes. As root it gives the file to `owner`.
 * Throws the error of the file system.
 */
export function writeHighWaterMark(file: string, head: LedgerHead, owner?: { uid: number; gid: number }): number {
  const fresh = `${file}.new`;
  rmSync(fresh, { force: true });
  // Never open an existing file or link: the user who owns this folder may have placed it as a trap.
  const fd = openSync(fresh, 'wx', OWNER_ONLY);
  try {
    if (owner !== undefined && process.getuid?.() === 0) fchownSync(fd, owner.uid, owner.gid);
    writeSync(fd, lineOf(head).repeat(LINES), 0, 'latin1');
    fsyncSync(fd);
    renameSync(fresh, file);
    return fd;
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

/**
 * File beside an open store with its newest payment. It is written for every payment, after the commit and before
 * anybody is informed. It is not synced: the mark survives a killed process, but may be older after a power cut.
 */
export class HighWaterMark {
  /** Undefined once closed: another file may get the same number. */
  #fd: number | undefined;
  readonly #file: string;
  readonly #log: Logger;
  #newest: LedgerHead;
  #line = 0;
  #failed = false;

  /** Replaces the mark. Throws the error of the file system. */
  constructor(file: string, head: LedgerHead, log: Logger) {
    this.#fd = writeHighWaterMark(file, head);
    this.#file = file;
    this.#newest = head;
    this.#log = log;
  }

  /** Never throws: a failing disk must not stop a payment here. Logs the first failure. */
  move(head: LedgerHead): void {
    const fd = this.#fd;
    if (fd === undefined || head.seq <= this.#newest.seq) return;
    this.#newest = head;
    this.#try(() => writeSync(fd, lineOf(head), this.#line * LINE_BYTES, 'latin1'));
    this.#line = (this.#line + 1) % LINES;
  }

  /** Syncs the file before it is closed. */
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

function headOf(line: string): LedgerHead | undefined {
  const found = /^((\d{1,16}) (-|[\da-f]{64})) (\d+) *\n$/.exec(line);
  if (found === null) return undefined;
  const [, text = '', seq, link = '', crc] = found;
  return crc32(text) === Number(crc) ? { seq: Number(seq), link: link === NO_LINK ? '' : link } : undefined;
}
