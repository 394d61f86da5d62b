import { type Kysely, sql } from 'kysely';
import type { Logger } from '../../../lib/log.ts';
import { onlyIntact } from '../integrity/checksums.ts';
import type { CreditRow, NewCreditRow, Tables } from '../schema/tables.ts';
import type { ModeHistory } from './mode-history.ts';
import { type Asked, sameCredit } from './same-credit.ts';
import { seqOf } from './seq.ts';

export interface NewCredit extends NewCreditRow, Asked {
  /** Ids to use if other credits of the same account, reference and amount have the first ones. */
  other_ids: readonly string[];
}

/** Stores the money that sources report (PROTOCOL.md, clause CRE). Every method settles once it is durable. */
export class CreditStore {
  readonly #db: Kysely<Tables>;
  readonly #log: Logger;
  readonly #history: ModeHistory;

  /** Payments that do not count according to `history` pay nothing (PROTOCOL.md, clause MOD-3). */
  constructor(db: Kysely<Tables>, log: Logger, history: ModeHistory) {
    this.#db = db;
    this.#log = log;
    this.#history = history;
  }

  /** Returns the stored credit that is the same money. `known` is as in `sameCredit`. */
  same(credit: NewCredit, known: ReadonlyMap<string, string>): Promise<CreditRow | undefined> {
    return sameCredit(this.#db, credit, known);
  }

  /** Returns credits, newest first, each with the orderId of its payment. With `before`, an id, only older ones. */
  async newest(limit: number, before?: string): Promise<(CreditRow & { order_id: string | null })[]> {
    const rows = this.#db
      .selectFrom('credits')
      .leftJoin('payments', 'payments.id', 'credits.payment_id')
      .selectAll('credits')
      .select('payments.order_id')
      .orderBy('credits.seq', 'desc')
      .limit(limit);
    const listed = before === undefined ? rows : rows.where('credits.seq', '<', seqOf('credits', before));
    return onlyIntact('credits', await listed.execute(), this.#log);
  }

  /** Returns the credits of these payments. A payment that no source has reported has none. */
  async ofPayments(paymentIds: readonly string[]): Promise<CreditRow[]> {
    if (paymentIds.length === 0) return [];
    const rows = this.#db.selectFrom('credits').selectAll().where('payment_id', 'in', paymentIds);
    return onlyIntact('credits', await rows.execute(), this.#log);
  }

  /** Returns the sum that was paid for each of these orders. */
  paidFor(orderIds: readonly string[]): Promise<ReadonlyMap<string, number>> {
    return paidForEach(this.#db, this.#history, orderIds);
  }
}

/** Returns the sum that was paid for each of these orders. */
export async function paidForEach(
  db: Kysely<Tables>,
  history: ModeHistory,
  orderRefs: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  if (orderRefs.length === 0) return new Map();
  const sums = await db
    .selectFrom('payments')
    .select(['order_ref', sql<number>`cast(sum("amount" * ${history.counted()}) as bigint)`.as('paid')])
    .where('order_ref', 'in', orderRefs)
    .where('trans_type', '=', 'C')
    .groupBy('order_ref')
    .execute();
  return new Map(sums.map(({ order_ref, paid }) => [order_ref ?? '', paid]));
}
