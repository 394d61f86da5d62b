import { type Kysely, sql } from 'kysely';
import type { Logger } from '../../lib/log.ts';
import type { Due } from '../../protocol/messages.ts';
import { intact, onlyIntact } from '../integrity/checksums.ts';
import { appendToLedger } from '../integrity/ledger.ts';
import type { AcknowledgedPayment } from '../integrity/recent-payments.ts';
import { RETENTION_MS } from '../retention.ts';
import type { CreditRow, OrderRow, Tables } from '../schema/tables.ts';
import { dueOf } from './credit-sides.ts';
import type { ModeHistory } from './mode-history.ts';
import { orderOfRequest } from './payment-requests.ts';
import { endOrder, enqueueDeliveries, orderWith, type PaymentEffects, type StoredPayment } from './payments.ts';
import { RegistryStore } from './registry.ts';
import { type Asked, sameCredit } from './same-credit.ts';
import { CODE_OF_CONTENT } from './search.ts';
import { nextSeq, seqOf } from './seq.ts';

/** Orders that are found by codes: a code is rarely that of two. */
const CODED_MAX = 100;
/** Orders of one amount among which a content is sought: the newest. */
const CANDIDATES_MAX = 1_000;

export type NewCredit = Omit<CreditRow, 'seq' | 'payment_id' | 'order_amount' | 'order_paid'> & {
  /** Ids where other credits of the same account, reference and amount have the first ones. */
  other_ids: readonly string[];
} & Asked;
/** An order as far as matching needs it. */
export type Candidate = Pick<OrderRow, 'id' | 'content' | 'status'>;

/** Whose orders a credit may pay: those of the account's partner, '' without one. */
export interface Payee {
  partner: string;
  bankAccount: string;
}

/** Finds orders that ask for money to one account, in the transaction of a credit. */
export interface OrderFinder {
  /** The order for which this source collects under this number. */
  byRequest(source: string, orderCode: number): Promise<string | undefined>;
  /** Orders with these codes, as MAT-1 or GEN-9 have them, with what was paid for them. */
  byCodes(codes: readonly string[]): Promise<(Candidate & { code: string; amount: number; paid: number })[]>;
  /** The newest orders of exactly this amount that were made by this time, newest first. */
  byAmount(amount: number, createdUntilMs: number): Promise<Candidate[]>;
}

/** How an order goes on after a payment: it is paid, it ended with less than it asked for, or it waits for more. */
export type Settlement = 'paid' | 'ended' | 'open';

/** The order of a credit, and what was paid for it with this credit. */
export interface Matched {
  order: OrderRow;
  paid: number;
}

/** The meaning of a credit. Called in its transaction, without side effects; `registry` is that of the transaction. */
export interface CreditDecisions {
  payee: Payee;
  find(finder: OrderFinder): Promise<string | undefined>;
  settle(matched: Matched): Settlement;
  effectsOf(
    matched: Matched | undefined,
    settlement: Settlement,
    registry: RegistryStore,
    /** The id of the credit. */
    transactionId: string,
  ): PaymentEffects | Promise<PaymentEffects>;
}

/** `duplicate`: it was told before. `kept`: nobody gets a payment for it. */
export type StoredCredit = { kind: 'duplicate' | 'kept' } | { kind: 'payment'; stored: StoredPayment; due: Due | null };

/** Which payments count in the sum that was paid for an order. */
type Counting = Pick<ModeHistory, 'counted'>;

/** Money that sources told of (PROTOCOL.md, clause CRE). Every method settles once the change is durable. */
export class CreditStore {
  readonly #db: Kysely<Tables>;
  readonly #log: Logger;
  readonly #history: Counting;
  readonly #onStored: (payment: AcknowledgedPayment) => void;

  /**
   * `onStored` is called for each stored payment, before anybody is informed. Payments that do not count by `history` pay
   * nothing (PROTOCOL.md, clause MOD-3).
   */
  constructor(
    db: Kysely<Tables>,
    log: Logger,
    { history, onStored }: { history: Counting; onStored: (payment: AcknowledgedPayment) => void },
  ) {
    this.#db = db;
    this.#log = log;
    this.#history = history;
    this.#onStored = onStored;
  }

  /**
   * Stores a credit with its payment, notices and callback in one transaction; a credit that is known changes nothing.
   * Without `decisions`, and if it is older than what the store remembers, it is kept without a payment. One that was kept
   * is paid when it is told again with `decisions`. Throws when its order is damaged.
   */
  async receive(
    credit: NewCredit,
    decisions: CreditDecisions | undefined,
    virtualAccounts: ReadonlyMap<string, string> = new Map(),
  ): Promise<StoredCredit> {
    const isTooOld = credit.bank_time_ms < credit.received_at_ms - RETENTION_MS;
    const result = await this.#db.transaction().execute(async (trx) => {
      const pays = isTooOld ? undefined : decisions;
      const known = await sameCredit(trx, credit, virtualAccounts);
      if (known !== undefined && (known.payment_id !== null || pays === undefined))
        return { kind: 'duplicate' } as const;
      const id = known?.id ?? (await insertCredit(trx, credit, pays !== undefined));
      if (pays === undefined) return { kind: 'kept' } as const;
      // The credit of a payment may have been lost with a damaged row: the payment is still the same.
      const payment = trx.selectFrom('payments').select('id').where('id', '=', id);
      if ((await payment.executeTakeFirst()) !== undefined) return { kind: 'duplicate' } as const;
      if (known !== undefined) {
        const { late, received_at_ms } = credit;
        await trx.updateTable('credits').set({ payment_id: id, late, received_at_ms }).where('id', '=', id).execute();
      }
      return storePayment(trx, this.#history, { ...credit, id }, pays);
    });
    if (result.kind !== 'payment') return result;
    const { head, ...rest } = result;
    this.#onStored(head);
    return rest;
  }

  /** The credit here that is the same money; `known` as of `receive`. */
  same(credit: NewCredit, known: ReadonlyMap<string, string>): Promise<CreditRow | undefined> {
    return sameCredit(this.#db, credit, known);
  }

  /** Newest first, each with the orderId of its payment; with `before`, an id, only older ones. */
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

  /** The credits of these payments; a payment that no source told of has none. */
  async ofPayments(paymentIds: readonly string[]): Promise<CreditRow[]> {
    if (paymentIds.length === 0) return [];
    const rows = this.#db.selectFrom('credits').selectAll().where('payment_id', 'in', paymentIds);
    return onlyIntact('credits', await rows.execute(), this.#log);
  }

  /** The sum that was paid for each of these orders. */
  paidFor(orderIds: readonly string[]): Promise<ReadonlyMap<string, number>> {
    return paidForEach(this.#db, this.#history, orderIds);
  }
}

/** Inserts a credit that is not known; returns its id, which is also that of its payment. */
async function insertCredit(
  db: Kysely<Tables>,
  { other_ids, webhook: _webhook, time_is_known: _known, ...credit }: NewCredit,
  hasPayment: boolean,
): Promise<string> {
  const ids = [credit.id, ...other_ids];
  const taken = await db.selectFrom('credits').select('id').where('id', 'in', ids).execute();
  const id = ids.find((it) => !taken.some((row) => row.id === it));
  if (id === undefined) throw new Error(`credit ${credit.source_id} of ${credit.source}: all its ids are taken`);
  const row = { ...credit, id, payment_id: hasPayment ? id : null, order_amount: null, order_paid: null };
  await db
    .insertInto('credits')
    .values({ ...row, seq: nextSeq('credits') })
    .execute();
  return id;
}

type PaidFor = Extract<StoredCredit, { kind: 'payment' }> & { head: AcknowledgedPayment };

async function storePayment(
  db: Kysely<Tables>,
  history: Counting,
  credit: NewCredit,
  pays: CreditDecisions,
): Promise<PaidFor> {
  const atMs = credit.received_at_ms;
  const found = await pays.find(finderOf(db, history, pays.payee));
  const order = found === undefined ? undefined : intact('orders', await orderWith(db, found));
  const matched = order && { order, paid: (await paidFor(db, history, order.id)) + credit.amount };
  const settlement = matched === undefined ? 'open' : pays.settle(matched);
  const effects = await pays.effectsOf(matched, settlement, new RegistryStore(db), credit.id);
  const head = await appendToLedger(db, effects.payment);
  await db.insertInto('payments').values(head).execute();
  await enqueueDeliveries(db, effects.payment, effects, atMs);
  const withdrawn =
    matched === undefined ? [] : await settleOrder(db, matched.order, settlement, effects.notices, atMs);
  const due = matched === undefined ? null : dueOf(matched.order.amount, matched.paid);
  if (due !== null) {
    const change = { order_amount: due.amount, order_paid: due.paid };
    await db.updateTable('credits').set(change).where('id', '=', credit.id).execute();
  }
  return { kind: 'payment', stored: { ...effects, withdrawn }, due, head };
}

async function settleOrder(
  db: Kysely<Tables>,
  { id, status }: OrderRow,
  settlement: Settlement,
  notices: PaymentEffects['notices'],
  atMs: number,
): Promise<StoredPayment['withdrawn']> {
  if (settlement === 'paid')
    return endOrder(db, id, { status: 'paid', paid_at_ms: atMs, updated_at_ms: atMs }, notices);
  // An order that was paid before stays so.
  if (settlement === 'ended' && status !== 'paid') {
    return endOrder(db, id, { status: 'underpaid', updated_at_ms: atMs }, notices);
  }
  await db.updateTable('orders').set({ updated_at_ms: atMs }).where('id', '=', id).execute();
  return [];
}

async function paidFor(db: Kysely<Tables>, history: Counting, orderRef: string): Promise<number> {
  const paid = await paidForEach(db, history, [orderRef]);
  return paid.get(orderRef) ?? 0;
}

/** The sum that was paid for each of these orders. */
async function paidForEach(
  db: Kysely<Tables>,
  history: Counting,
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

function finderOf(db: Kysely<Tables>, history: Counting, { partner, bankAccount }: Payee): OrderFinder {
  const fields = ['orders.id', 'orders.content', 'orders.status'] as const;
  const isOwn = (it: Pick<OrderRow, 'partner' | 'bank_account' | 'trans_type'>) =>
    it.partner === partner && it.bank_account === bankAccount && it.trans_type === 'C';
  return {
    byRequest: async (source, orderCode) => {
      const found = await orderOfRequest(db, source, orderCode);
      return found?.bank_account === bankAccount ? found.id : undefined;
    },
    byCodes: async (codes) => {
      if (codes.length === 0) return [];
      const orders = db
        .selectFrom('orders')
        .select([...fields, 'amount', 'partner', 'orders.bank_account', 'trans_type'])
        .orderBy('seq', 'desc')
        .limit(CODED_MAX);
      const own = await orders
        .innerJoin('order_codes', 'order_codes.order_ref', 'orders.id')
        .select('order_codes.code')
        .where('order_codes.bank_account', '=', bankAccount)
        .where('order_codes.code', 'in', codes)
        .execute();
      // By the code alone: with the account SQLite would read all its orders.
      const made = await orders.select(CODE_OF_CONTENT.as('code')).where(CODE_OF_CONTENT, 'in', codes).execute();
      const found = [...own, ...made].filter(isOwn);
      const paid = await paidForEach(
        db,
        history,
        found.map(({ id }) => id),
      );
      return found.map((it) => ({ ...it, paid: paid.get(it.id) ?? 0 }));
    },
    byAmount: (amount, createdUntilMs) =>
      db
        .selectFrom('orders')
        .select(fields)
        .where('bank_account', '=', bankAccount)
        .where('amount', '=', amount)
        .where('partner', '=', partner)
        // A literal: with a parameter SQLite does not use the index of credits.
        .where('trans_type', '=', sql.lit('C'))
        .where('created_at_ms', '<=', createdUntilMs)
        .orderBy('seq', 'desc')
        .limit(CANDIDATES_MAX)
        .execute(),
  };
}
