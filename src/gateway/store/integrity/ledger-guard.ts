import { existsSync } from 'node:fs';
import type { Kysely } from 'kysely';
import { PayboxError } from '../../../lib/errors.ts';
import type { Logger } from '../../../lib/log.ts';
import type { Tables } from '../schema/tables.ts';
import { acceptLossFile, type HighWaterMark, type StoreLocation } from './high-water-mark.ts';
import { atOneMoment, chainOf } from './ledger.ts';
import {
  fixOf,
  type Loss,
  ledgerIn,
  logLoss,
  lossError,
  lossesIn,
  reportedLosses,
  reportLoss,
  wholeLoss,
} from './loss.ts';

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
 * clause STO-5). A gateway compares only what it has written itself, and leaves word of a loss in the database. So all
 * gateways of a database refuse until an admin accepts the loss at one of them.
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
    const { own, former } = this.#mark.read();
    // The check of the start looks at all rows, and logs what is lost.
    if (existsSync(acceptLossFile(this.#location))) return;
    const form = await ledgerIn(db);
    // The check of the start compares a store of an earlier version, after its migration.
    if (form === 'former') return;
    const known = [own, ...former];
    const losses =
      form === 'none'
        ? known.flatMap((it) => wholeLoss(it) ?? [])
        : await atOneMoment(db, (moment) => lossesIn(moment, known));
    if (losses.length === 0) return;
    for (const loss of losses) logLoss(loss, this.#location, this.#log);
    if (form === 'current' && this.#location.sharing !== undefined) await this.#report(db, losses);
    const problems = losses.map(({ problem }) => problem);
    throw lossError(problems, this.#location);
  }

  /**
   * Checks on each later connection, and again while payments are missing. `isHolder` is true once the connection holds
   * the lock. Returns whether the database has all payments.
   */
  async check(db: Kysely<Tables>, isHolder: boolean): Promise<boolean> {
    const { known } = this.#mark;
    const losses = await atOneMoment(db, (moment) => lossesIn(moment, known));
    const [loss] = losses;
    if (loss === undefined) {
      await this.#followAccepted(db);
      if (this.#refusal !== undefined) {
        const [{ newest }] = this.#mark.known;
        this.#log.warn('payments-recovered', { newest: typeof newest === 'object' ? newest.number : 0 });
      }
      this.#refusal = undefined;
      return true;
    }
    if (this.#refusal?.problem !== loss.problem) {
      for (const each of losses) logLoss(each, this.#location, this.#log);
    }
    this.#refusal = new PaymentsMissingError(loss.problem, fixOf(this.#location));
    // Another gateway that uses this database may not know about the payments.
    if (isHolder) await this.#report(db, losses);
    return false;
  }

  /**
   * Checks again once another gateway has reported a loss, which this gateway cannot notice by itself. The check of a
   * start finds it too, and may accept it, so nothing is done before that.
   */
  async hear(db: Kysely<Tables>): Promise<void> {
    if (!this.#mark.isOpen) return;
    if ((await reportedLosses(db)).length > 0) await this.check(db, false);
  }

  /** Stores losses that this gateway has noticed itself. */
  async #report(db: Kysely<Tables>, losses: readonly Loss[]): Promise<void> {
    const own = new Set(this.#mark.known.map(({ writer }) => writer));
    for (const loss of losses.filter(({ writer }) => own.has(writer))) await reportLoss(db, loss);
  }

  /** Lets the mark follow the chain again, after an admin has accepted a loss of it at another gateway. */
  async #followAccepted(db: Kysely<Tables>): Promise<void> {
    const [{ newest, recent }] = this.#mark.known;
    if (this.#refusal === undefined || typeof newest !== 'object') return;
    const chain = await chainOf(db, this.#mark.writer);
    if (chain === undefined || chain.end_seq >= newest.number) return;
    const left = recent.filter(({ number }) => number <= chain.end_seq);
    this.#mark.begin({ number: chain.end_seq, link: chain.end_link }, left);
  }
}
