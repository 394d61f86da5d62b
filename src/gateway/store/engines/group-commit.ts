import { systemClock } from '../../../lib/clock.ts';
import { PayboxError } from '../../../lib/errors.ts';

/** While others wait for their turn, a wait for the disk begins this much later, so that it serves them too. */
const GATHER_MS = 3;

/** A second connection, beside the one that writes. */
export interface SyncConnection {
  /**
   * Waits until the disk has everything that the server has committed. Without `hasWritten` it is probably there
   * already. Resolves with false when this connection has ended, so that another one must ask. Rejects when the server
   * does not answer.
   */
  sync(hasWritten: boolean): Promise<boolean>;
  close(): void;
}

/** The connection that writes. */
export interface Writer {
  /** Waits until the disk has everything that this connection has committed, after the turns that wait for it. */
  sync(): Promise<void>;
  /** Returns whether somebody waits for a turn. */
  isBusy(): boolean;
}

interface Waiter {
  /** Settled with this turn. */
  turn: number;
  resolve: () => void;
  reject: (error: unknown) => void;
}

/**
 * Makes commits of a PostgreSQL database durable together.
 *
 * Theory. The connection that writes is used in turns. Its commits do not wait for the disk, so a turn is short. A
 * commit that does wait brings all earlier commits of the server to the disk. So one wait on a second connection serves
 * all turns that ended before it began.
 *
 * Invariants.
 * - A query is answered only after the disk has all commits that it may have seen.
 * - A connection proves nothing about commits before it was opened, because the server may have crashed in between.
 * - After a reconnect, all waiting turns fail: their commits may be lost, so their callers get an error.
 * - Without the second connection, waits run on the writing one. That is slower, but equally safe.
 */
export class GroupCommit {
  readonly #writer: Writer;
  readonly #waiters: Waiter[] = [];
  /** The newest turn. */
  #turn = 0;
  /** The newest turn that ended and may have committed. */
  #written = 0;
  /** The newest turn that ended and may have committed, or seen what another gateway has committed. */
  #ended = 0;
  /** Every turn up to this one is on the disk or has failed. */
  #durable = 0;
  #isSyncing = false;
  #second: { connection: SyncConnection; openedAfter: number } | undefined;

  constructor(writer: Writer) {
    this.#writer = writer;
  }

  get hasSecond(): boolean {
    return this.#second !== undefined;
  }

  /** Begins a turn. */
  begin(): number {
    this.#turn += 1;
    return this.#turn;
  }

  /** Ends a turn that may have committed. */
  written(turn: number): void {
    this.#written = turn;
    this.#ended = turn;
  }

  /** Ends a turn that has written nothing, but may have seen what another gateway has committed. */
  seen(turn: number): void {
    this.#ended = turn;
  }

  /**
   * Records that the writing connection was reopened, and that everything it finds is on the disk. Commits of earlier
   * turns that still wait count as failed, because the server may have lost them in a crash.
   */
  writerOpened(): void {
    this.#settle(this.#turn, ({ reject }) => reject(lostCommit()));
    this.#durable = this.#turn;
    // The second connection may have been lost too. A wait on it could hang.
    this.closeSecond();
  }

  /** Uses this new connection for the waits, and closes the one before it. This object owns the connection. */
  openedSecond(connection: SyncConnection): void {
    this.closeSecond();
    this.#second = { connection, openedAfter: this.#turn };
  }

  /** Makes later waits use the writing connection. Closes only this second connection, or any without an argument. */
  closeSecond(connection = this.#second?.connection): void {
    if (connection === undefined || this.#second?.connection !== connection) return;
    this.#second = undefined;
    connection.close();
  }

  /** Settles once the disk has all commits of the turns so far, and what they have read. Rejects if not certain. */
  settled(): Promise<void> {
    if (this.#ended <= this.#durable) return Promise.resolve();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#waiters.push({ turn: this.#ended, resolve, reject });
    if (!this.#isSyncing) void this.#syncAll();
    return promise;
  }

  async #syncAll(): Promise<void> {
    this.#isSyncing = true;
    while (this.#waiters.length > 0) {
      if (this.#writer.isBusy()) await systemClock.sleep(GATHER_MS);
      await this.#syncOnce();
    }
    this.#isSyncing = false;
  }

  async #syncOnce(): Promise<void> {
    const ended = this.#ended;
    try {
      if (!(await this.#sync())) return;
      this.#settle(ended, ({ resolve }) => resolve());
      this.#durable = Math.max(this.#durable, ended);
    } catch (error) {
      this.#settle(ended, ({ reject }) => reject(error));
    }
  }

  async #sync(): Promise<boolean> {
    const second = this.#second;
    // A connection proves nothing about commits before it was opened, because the server may have crashed in between.
    if (second === undefined || second.openedAfter > this.#durable) {
      await this.#writer.sync();
      return true;
    }
    let isDone = false;
    try {
      isDone = await second.connection.sync(this.#written > this.#durable);
      return isDone;
    } finally {
      if (!isDone) this.closeSecond(second.connection);
    }
  }

  #settle(turn: number, how: (waiter: Waiter) => void): void {
    const later = this.#waiters.findIndex((it) => it.turn > turn);
    for (const waiter of this.#waiters.splice(0, later < 0 ? this.#waiters.length : later)) how(waiter);
  }
}

function lostCommit(): PayboxError {
  const what = 'the connection to the database was lost before the disk certainly had this change';
  return new PayboxError('STORAGE_FAULT', what, { severity: 'retryable', fix: 'check the database server' });
}
