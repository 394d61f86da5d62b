import { type Kysely, sql } from 'kysely';
import type { Due } from '../../../protocol/messages.ts';
import { intact } from '../integrity/checksums.ts';
import { appendToLedger } from '../integrity/ledger.ts';
import type { AcknowledgedPayment } from '../integrity/recent-payments.ts';
import { RETENTION_MS } from '../retention.ts';
import type { OrderRow, OrderStatus, PaymentDetails, Tables } from '../schema/tables.ts';
import { type NewCredit, paidForEach } from './credits.ts';
import type { ModeHistory } from './mode-history.ts';
import { orderOfRequest } from './payment-requests.ts';
import { endOrder, enqueueDeliveries, orderWith, type PaymentEffects, type StoredPayment } from './payments.ts';
import { RegistryStore } from './registry.ts';
import { sameCredit } from './same-credit.ts';
import { CODE_OF_CONTENT, findOrderFor } from './search.ts';
import { nextSeq } from './seq.ts';

/** At most this many orders are found by codes. Two orders rarely have the same code. */
const CODED_MAX = 100;
/** A content is searched among this many orders of one amount, the newest. */
const CANDIDATES_MAX = 1_000;

/** The part of an order that matching needs. */
export interface NamedOrder {
  content: string;
  status: OrderStatus;
}

export interface Candidate extends NamedOrder {
  id: string;
}

/** The owner of the orders that a credit may pay. `partner` is '' for an account without one. */
export interface Payee {
  partner: string;
  bankAccount: string;
}

/** Finds orders that ask for money to one account, in the transaction of a credit. */
export interface OrderFinder {
  /** Returns the order for which this source collects under this number. */
  byRequest(source: string, orderCode: number): Promise<string | undefined>;
  /** Returns the orders with these codes (clauses MAT-1 and GEN-9), and the sum that was paid for each. */
  byCodes(codes: readonly string[]): Promise<(Candidate & { code: string; amount: number; paid: number })[]>;
  /** Returns the newest orders of exactly this amount that were made by this time, at most 1,000, newest first. */
  byAmount(amount: number, createdUntilMs: number): Promise<Candidate[]>;
}

/** The state of an order after a payment: it is paid, it ended with less than it asked for, or it waits for more. */
export type Settlement = 'paid' | 'ended' | 'open';

/**
 * The result of storing a credit. `duplicate`: it was reported before. `kept`: nobody gets a payment for it. `new`: its
 * payment, which has this id, must still be stored.
 */
export type TakenCredit = { kind: 'duplicate' | 'kept' } | { kind: 'new'; id: string };

/**
 * Offers small reads and writes of one transaction in which money is stored. The caller decides, and calls them one
 * after the other. An exception undoes all of them.
 */
export class MoneyTransaction {
  /** Partners, accounts and boxes as this transaction sees them. */
  readonly registry: RegistryStore;
  /** The payments that this transaction stored. The store marks them as acknowledged. */
  readonly stored: AcknowledgedPayment[] = [];
  readonly #db: Kysely<Tables>;
  readonly #history: ModeHistory;
  readonly #writer: string;

  /** `writer` is the name under which this gateway chains its payments. */
  constructor(db: Kysely<Tables>, history: ModeHistory, writer: string) {
    this.#db = db;
    this.#history = history;
    this.#writer = writer;
    this.registry = new RegistryStore(db);
  }

  /** Returns the order that this money pays (PROTOCOL.md, clause CBK-6). Throws when the order is damaged. */
  async orderFor(money: PaymentDetails, atMs: number): Promise<OrderRow | undefined> {
    return intact('orders', await findOrderFor(this.#db, money, atMs));
  }

  /** Returns the order with this id. Throws when the order is damaged. */
  async order(id: string): Promise<OrderRow | undefined> {
    return intact('orders', await orderWith(this.#db, id));
  }

  /** Returns the sum that was paid for an order until now. */
  async paidFor(orderId: string): Promise<number> {
    return (await paidForEach(this.#db, this.#history, [orderId])).get(orderId) ?? 0;
  }

  /** Returns a finder of orders that ask for money to this account. */
  ordersOf(payee: Payee): OrderFinder {
    return finderOf(this.#db, this.#history, payee);
  }

  /**
   * Stores a credit, unless it is known. `hasAccount` means that somebody gets the money. A kept credit that is
   * reported again with `hasAccount` becomes new. A credit that is older than the rows in the store is kept
   * (PROTOCOL.md, clauses CRE-2 and CRE-4).
   */
  async takeCredit(
    credit: NewCredit,
    virtualAccounts: ReadonlyMap<string, string>,
    hasAccount: boolean,
  ): Promise<TakenCredit> {
    const db = this.#db;
    const isPaid = hasAccount && credit.bank_time_ms >= credit.received_at_ms - RETENTION_MS;
    const known = await sameCredit(db, credit, virtualAccounts);
    if (known !== undefined && (known.payment_id !== null || !isPaid)) return { kind: 'duplicate' };
    const id = known?.id ?? (await insertCredit(db, credit, isPaid));
    if (!isPaid) return { kind: 'kept' };
    // The row of the credit may have been lost by damage. Its payment is still the same.
    const payment = db.selectFrom('payments').select('id').where('id', '=', id);
    if ((await payment.executeTakeFirst()) !== undefined) return { kind: 'duplicate' };
    if (known !== undefined) {
      const { late, received_at_ms } = credit;
      await db.updateTable('credits').set({ payment_id: id, late, received_at_ms }).where('id', '=', id).execute();
    }
    return { kind: 'new', id };
  }

  /** Stores with a credit what is due for its order after it. */
  async noteDue(creditId: string, { amount, paid }: Due): Promise<void> {
    const change = { order_amount: amount, order_paid: paid };
    await this.#db.updateTable('credits').set(change).where('id', '=', creditId).execute();
  }

  /** Stores a payment with its notices and its callback. */
  async addPayment(effects: PaymentEffects, atMs: number): Promise<void> {
    const seq = nextSeq(this.#db, 'payments');
    const stored = await appendToLedger(this.#db, this.#writer, effects.payment, seq);
    await enqueueDeliveries(this.#db, effects.payment, effects, atMs);
    this.stored.push(stored);
  }

  /** Updates the state of an order after a payment. Returns the pushes that must be withdrawn. */
  async settle(
    { id, status }: OrderRow,
    settlement: Settlement,
    notices: PaymentEffects['notices'],
    atMs: number,
  ): Promise<StoredPayment['withdrawn']> {
    if (settlement === 'paid') {
      return endOrder(this.#db, id, { status: 'paid', paid_at_ms: atMs, updated_at_ms: atMs }, notices);
    }
    // An order that was paid before stays paid.
    if (settlement === 'ended' && status !== 'paid') {
      return endOrder(this.#db, id, { status: 'underpaid', updated_at_ms: atMs }, notices);
    }
    await this.#db.updateTable('orders').set({ updated_at_ms: atMs }).where('id', '=', id).execute();
    return [];
  }
}

/** Inserts a credit that is not known. Returns its id, which is also the id of its payment. */
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
    .values({ ...row, seq: nextSeq(db, 'credits') })
    .execute();
  return id;
}

function finderOf(db: Kysely<Tables>, history: ModeHistory, { partner, bankAccount }: Payee): OrderFinder {
  const fields = ['orders.id', 'orders.content', 'orders.status'] as const;
  const isOwn = (it: { partner: string; bank_account: string; trans_type: string }) =>
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
      // The query uses the code alone. With the account, SQLite would read all orders of the account.
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
        // This is a literal, because with a parameter SQLite does not use the index of credits.
        .where('trans_type', '=', sql.lit('C'))
        .where('created_at_ms', '<=', createdUntilMs)
        .orderBy('seq', 'desc')
        .limit(CANDIDATES_MAX)
        .execute(),
  };
}
