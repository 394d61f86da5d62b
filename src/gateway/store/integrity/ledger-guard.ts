import { existsSync } from 'node:fs';
import type { Kysely } from 'kysely';
import { PayboxError } from '../../../lib/errors.ts';
import type { Logger } from '../../../lib/log.ts';
import type { Tables } from '../schema/tables.ts';
import { acceptLossFile, type HighWaterMark, type StoreLocation } from './high-water-mark.ts';
import { fixOf, hasLedger, logLoss, lossError, lossIn, reportLoss, wholeLoss } from './loss.ts';

/** Answers every call while payments are missing. */
export class PaymentsMissingError extends PayboxError {
  /** The status of the HTTP answer. */
  readonly statusCode = 503;
  readonly problem: string;

  constructor(problem: string, fix: string) {
    const what = `the gateway writes nothing: its database is not the one that it left: ${problem}`;
    super('STORAGE_FAULT', what, { severity: 'retryable', fix });
    this.problem = problem;
  }
}

/**
 * Compares the ledger of a PostgreSQL database with the payments that this gateway has acknowledged, after each
 * connect. A failover, a restore or another address may have led it to a database that lacks payments (PROTOCOL.md,
 * clause STO-5).
 */
export class LedgerGuard {
  readonly #location: StoreLocation;
  readonly #mark: HighWaterMark;
  readonly #log: Logger;
  #refusal: PaymentsMissingError | undefined;

  constructor(location: StoreLocation, mark: HighWaterMark, log: Logger) {
    this.#location = location;
    this.#mark = mark;
    this.#log = log;
  }

  /** Returns whether payments are missing. */
  get isRefusing(): boolean {
    return this.#refusal !== undefined;
  }

  /** Throws while payments are missing. */
  assertWhole(): void {
    if (this.#refusal !== undefined) throw this.#refusal;
  }

  /** Checks before the first write of a start. Throws ConfigError when payments are missing without an acceptance. */
  async checkFirst(db: Kysely<Tables>): Promise<void> {
    const known = this.#mark.read();
    // The check of the start looks at all rows, and logs what is lost.
    if (existsSync(acceptLossFile(this.#location))) return;
    const loss = (await hasLedger(db)) ? await lossIn(db, known) : wholeLoss(known);
    if (loss === undefined) return;
    logLoss(loss, this.#location, this.#log);
    throw lossError([loss.problem], this.#location);
  }

  /**
   * Checks on each later connection, and again while payments are missing. `isHolder` is true once the connection holds
   * the lock. Returns whether the database has all payments.
   */
  async check(db: Kysely<Tables>, isHolder: boolean): Promise<boolean> {
    const { known } = this.#mark;
    const loss = await lossIn(db, known);
    if (loss === undefined) {
      if (this.#refusal !== undefined) {
        this.#log.warn('payments-recovered', { newest: typeof known.newest === 'object' ? known.newest.seq : 0 });
      }
      this.#refusal = undefined;
      return true;
    }
    if (this.#refusal?.problem !== loss.problem) logLoss(loss, this.#location, this.#log);
    this.#refusal = new PaymentsMissingError(loss.problem, fixOf(this.#location));
    // Another gateway that opens this database later may not know about the payments.
    if (isHolder) await reportLoss(db, loss);
    return false;
  }
}
