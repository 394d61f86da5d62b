import {
  closeSync,
  existsSync,
  fchownSync,
  fdatasyncSync,
  fstatSync,
  fsyncSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { crc32 } from 'node:zlib';
import { ConfigError, reasonOf } from '../../../lib/errors.ts';
import { readFileNow } from '../../../lib/files.ts';
import type { Logger } from '../../../lib/log.ts';
import type { StoreSharing } from '../engines/store-sharing.ts';
import type { LedgerHead } from './ledger.ts';
import { type AcknowledgedPayment, lineOfPayment, paymentsInLines, RecentPayments } from './recent-payments.ts';

export interface StoreLocation {
  dataDir: string;
  databaseUrl?: string | undefined;
  /** Set if other gateways share the database. */
  sharing?: StoreSharing | undefined;
}

const OWNER_ONLY = 0o600;
/**
 * The file begins with two lines of equal length, written in turn. If a power cut damages one, the other is complete.
 * The lines of the newest payments follow.
 */
const LINE_BYTES = 128;
const LINES = 2;
const NO_LINK = '-';
const SUFFIX = '.mark';

/** Returns the path of a file of a store in dataDir that ends with this suffix. */
export function besideStore({ dataDir, databaseUrl, sharing }: StoreLocation, suffix: string): string {
  if (databaseUrl === undefined) return join(dataDir, `gateway${suffix}`);
  const database = new URL(databaseUrl).pathname.slice(1).replaceAll(/[^\w-]/g, '_');
  const generation = sharing?.generation ? `-${sharing.generation}` : '';
  return join(dataDir, `gateway-${database}${generation}${suffix}`);
}

/** Returns under which name a gateway chains its payments. '' for a gateway alone. */
export function writerOf({ sharing }: StoreLocation): string {
  return sharing?.name ?? '';
}

/** Returns the path of the mark of a writer in a store. */
export function highWaterMarkFile(location: StoreLocation, writer = writerOf(location)): string {
  return besideStore(location, writer === '' ? SUFFIX : `.${writer}${SUFFIX}`);
}

/** Returns the writers whose marks of a PostgreSQL store are in dataDir. The gateway may have had another name before. */
export function writersWithMark(location: StoreLocation): string[] {
  if (location.databaseUrl === undefined || !existsSync(location.dataDir)) return [];
  const first = basename(besideStore(location, ''));
  return readdirSync(location.dataDir)
    .filter((name) => name === `${first}${SUFFIX}` || (name.startsWith(`${first}.`) && name.endsWith(SUFFIX)))
    .map((name) => name.slice(first.length + 1, -SUFFIX.length));
}

/** Returns the path of the file by which an admin accepts a loss of this store (PROTOCOL.md, clause STO-3). */
export function acceptLossFile(location: StoreLocation): string {
  return besideStore(location, '.accept-loss');
}

/**
 * The payments that a mark contains: the newest by number and link, and the newest ones with their facts. Without a
 * file there are none.
 */
export interface KnownPayments {
  newest: LedgerHead | 'damaged' | undefined;
  recent: readonly AcknowledgedPayment[];
}

/** Acknowledged payments of one chain. */
export interface WrittenPayments extends KnownPayments {
  writer: string;
}

/** Reads a mark. Throws the error of the file system. */
export function readHighWaterMark(file: string): KnownPayments {
  if (!existsSync(file)) return { newest: undefined, recent: [] };
  const bytes = readFileNow(file);
  const lineAt = (n: number) => bytes.toString('latin1', n * LINE_BYTES, (n + 1) * LINE_BYTES);
  const heads = [0, 1].flatMap((n) => headOf(lineAt(n)) ?? []);
  const newest = heads.toSorted((a, b) => b.number - a.number)[0] ?? 'damaged';
  const recent = paymentsInLines(bytes.subarray(LINES * LINE_BYTES));
  return { newest, recent: newest === 'damaged' ? recent : recent.filter(({ number }) => number <= newest.number) };
}

/**
 * Replaces the mark durably. Returns its descriptor, which the caller closes. As root it gives the file to `owner`.
 * Throws the error of the file system.
 */
export function writeHighWaterMark(
  file: string,
  head: LedgerHead,
  { owner, recent = [] }: { owner?: { uid: number; gid: number }; recent?: readonly AcknowledgedPayment[] } = {},
): number {
  const fresh = `${file}.new`;
  rmSync(fresh, { force: true });
  // An existing file or link is never opened: the user who owns this folder may have placed it as a trap.
  const fd = openSync(fresh, 'wx', OWNER_ONLY);
  try {
    if (owner !== undefined && process.getuid?.() === 0) fchownSync(fd, owner.uid, owner.gid);
    writeSync(fd, lineOf(head).repeat(LINES), 0, 'latin1');
    for (const payment of recent) writePayment(fd, payment);
    fsyncSync(fd);
    renameSync(fresh, file);
    return fd;
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

/**
 * Records the payments that this gateway has acknowledged, in memory and in a file beside the store.
 *
 * Theory: a store that was restored or truncated looks complete by itself. Only a second record shows that payments are
 * missing. The gateway compares both at a start and at a reconnect, before it writes.
 *
 * Invariants:
 * 1. The file is written for every payment, after the commit and before anybody receives the payment. So the mark is
 * never ahead of the store, and it covers every announced payment of a killed process.
 * 2. The file is not synced for each payment, so it may be older after a power cut. It is synced when it is closed or
 * replaced.
 * 3. The facts of a payment are written before the head that names it. The heads alternate between two lines, so one is
 * always complete.
 * 4. A failing disk here never stops a payment.
 * 5. A gateway that has another name than before continues another chain. It still compares the marks that it wrote
 * under former names, and leaves them as they are.
 */
export class HighWaterMark {
  readonly writer: string;
  readonly file: string;
  readonly #location: StoreLocation;
  readonly #log: Logger;
  /** Undefined before `begin` and after `close`, because another file may get the same number. */
  #fd: number | undefined;
  #newest: KnownPayments['newest'];
  #recent = new RecentPayments();
  #former: WrittenPayments[] = [];
  #line = 0;
  #failed = false;

  constructor(location: StoreLocation, log: Logger) {
    this.writer = writerOf(location);
    this.file = highWaterMarkFile(location);
    this.#location = location;
    this.#log = log;
  }

  /** Returns whether the mark follows the chain. */
  get isOpen(): boolean {
    return this.#fd !== undefined;
  }

  /** Reads the file, and those of former names. Throws ConfigError when one cannot be read. */
  read(): { own: WrittenPayments; former: readonly WrittenPayments[] } {
    const own = this.#read(this.writer);
    this.#newest = own.newest;
    this.#recent = new RecentPayments(own.recent);
    const writers = writersWithMark(this.#location).filter((it) => it !== this.writer);
    this.#former = writers.map((it) => this.#read(it));
    return { own, former: this.#former };
  }

  /** The acknowledged payments of the gateway's own chain, then those of its former names. */
  get known(): [own: WrittenPayments, ...former: WrittenPayments[]] {
    return [{ writer: this.writer, newest: this.#newest, recent: this.#recent.all() }, ...this.#former];
  }

  /**
   * Replaces the file, and follows the chain from now on. Deletes damaged marks of former names, which say nothing any
   * more. Throws ConfigError when the file cannot be written.
   */
  begin(head: LedgerHead, recent: readonly AcknowledgedPayment[]): void {
    const before = this.#fd;
    try {
      this.#fd = writeHighWaterMark(this.file, head, { recent });
      for (const { writer, newest } of this.#former) {
        if (newest === 'damaged') rmSync(highWaterMarkFile(this.#location, writer), { force: true });
      }
    } catch (error) {
      throw this.#unusable('written', error);
    }
    if (before !== undefined) closeSync(before);
    this.#newest = head;
    this.#recent = new RecentPayments(recent);
  }

  /** Records a payment. Never throws: a failing disk must not stop a payment here. Logs the first failure. */
  move(payment: AcknowledgedPayment): void {
    const fd = this.#fd;
    const newest = typeof this.#newest === 'object' ? this.#newest.number : 0;
    if (fd === undefined || payment.number <= newest) return;
    const head = { number: payment.number, link: payment.link };
    this.#newest = head;
    this.#recent.add(payment);
    this.#try(() => {
      // If somebody has deleted the file, no start would find what is written to it.
      if (fstatSync(fd).nlink === 0) return this.#replace(fd, head);
      // The facts are written before the head. A mark whose newest payment lacks its facts would be less useful than an
      // older mark.
      writePayment(fd, payment);
      writeSync(fd, lineOf(head), this.#line * LINE_BYTES, 'latin1');
    });
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

  #read(writer: string): WrittenPayments {
    const file = highWaterMarkFile(this.#location, writer);
    try {
      return { writer, ...readHighWaterMark(file) };
    } catch (error) {
      throw this.#unusable('read', error, file);
    }
  }

  #replace(fd: number, head: LedgerHead): void {
    this.#fd = writeHighWaterMark(this.file, head, { recent: this.#recent.all() });
    closeSync(fd);
    this.#log.warn('mark-replaced', { file: this.file, reason: 'somebody had deleted it' });
  }

  #try(work: () => void): void {
    try {
      work();
      this.#failed = false;
    } catch (error) {
      const fix = 'after a loss a start may not know the newest payments: check the disk and the folder';
      if (!this.#failed) this.#log.warn('mark-not-written', { file: this.file, reason: reasonOf(error), fix });
      this.#failed = true;
    }
  }

  #unusable(how: 'read' | 'written', error: unknown, file = this.file): ConfigError {
    const what = `dataDir: the mark ${file} cannot be ${how}: ${reasonOf(error)}`;
    const fix = 'let the user that runs the gateway read and write this folder, on a disk with room';
    return new ConfigError(`${what}; without it a start cannot know whether payments are missing`, fix);
  }
}

function writePayment(fd: number, payment: AcknowledgedPayment): void {
  const { line, offset } = lineOfPayment(payment);
  writeSync(fd, line, 0, line.length, LINES * LINE_BYTES + offset);
}

function lineOf({ number, link }: LedgerHead): string {
  const text = `${number} ${link || NO_LINK}`;
  return `${`${text} ${crc32(text)}`.padEnd(LINE_BYTES - 1)}\n`;
}

function headOf(line: string): LedgerHead | undefined {
  const found = /^((\d{1,16}) (-|[\da-f]{64})) (\d+) *\n$/.exec(line);
  if (found === null) return undefined;
  const [, text = '', number, link = '', crc] = found;
  return crc32(text) === Number(crc) ? { number: Number(number), link: link === NO_LINK ? '' : link } : undefined;
}
