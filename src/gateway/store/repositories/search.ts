import { expressionBuilder, type Kysely, type Selectable, sql } from 'kysely';
import type { Logger } from '../../../lib/log.ts';
import { onlyIntact } from '../integrity/checksums.ts';
import {
  CLOCK_ERROR_MS_MAX,
  OPEN_PUSH,
  type OrderRow,
  type PaymentDetails,
  type PaymentRow,
  type Tables,
} from '../schema/tables.ts';
import type { ModeHistory } from './mode-history.ts';

const FOUND_MAX = 100;
/** The same expression as in the index `orders_of_code`. */
export const CODE_OF_CONTENT = sql<string>`substr("orders"."content", 1, 13)`;

/** An account of a partner. A partner finds nothing of others. */
export interface OwnAccount {
  partner: string;
  bank_account: string;
}

/**
 * Finds orders and payments by the facts that a partner or a bank names. Leaves out payments that do not count
 * according to `history` (PROTOCOL.md, clause MOD-3).
 */
export class Search {
  readonly #db: Kysely<Tables>;
  readonly #log: Logger;
  readonly #history: ModeHistory;

  constructor(db: Kysely<Tables>, log: Logger, history: ModeHistory) {
    this.#db = db;
    this.#log = log;
    this.#history = history;
  }

  /** Returns the newest orders with this orderId, and their payments. */
  async byOrderId(account: OwnAccount, orderId: string): Promise<{ orders: OrderRow[]; payments: PaymentRow[] }> {
    const found = await this.#db
      .selectFrom('orders')
      .selectAll()
      .where('order_id', '=', orderId)
      .where('partner', '=', account.partner)
      .where('bank_account', '=', account.bank_account)
      .orderBy('seq', 'desc')
      .limit(FOUND_MAX)
      .execute();
    const orders = onlyIntact('orders', found, this.#log);
    if (orders.length === 0) return { orders, payments: [] };
    const ids = orders.map(({ id }) => id);
    const paid = this.#payments().where('order_ref', 'in', ids).orderBy('seq').limit(FOUND_MAX);
    return { orders, payments: onlyIntact('payments', await paid.execute(), this.#log) };
  }

  /** Returns the payment with this reference number, and its order. */
  async byReference(account: OwnAccount, reference: string): Promise<{ orders: OrderRow[]; payments: PaymentRow[] }> {
    const found = await this.#payments()
      .where('reference_number', '=', reference)
      .where('partner', '=', account.partner)
      .where('bank_account', '=', account.bank_account)
      .limit(1)
      .execute();
    const payments = onlyIntact('payments', found, this.#log);
    const id = payments[0]?.order_ref ?? '';
    const orders = await this.#db.selectFrom('orders').selectAll().where('id', '=', id).execute();
    return { orders: onlyIntact('orders', orders, this.#log), payments };
  }

  /** Returns the content of the newest order that fits the money and whose QR has this code (clause CBK-8). */
  async contentWithCode(money: PaymentDetails, code: string): Promise<string | undefined> {
    const own = await this.#db
      .selectFrom('order_codes')
      .innerJoin('orders', 'orders.id', 'order_codes.order_ref')
      .select(['content', 'partner', 'amount', 'trans_type'])
      .where('order_codes.bank_account', '=', money.bank_account)
      .where('code', '=', code)
      .executeTakeFirst();
    if (own !== undefined) {
      const { partner, amount, trans_type } = money;
      const fits = own.partner === partner && own.amount === amount && own.trans_type === trans_type;
      return fits ? own.content : undefined;
    }
    const found = await this.#db
      .selectFrom('orders')
      .select('content')
      .where(CODE_OF_CONTENT, '=', code)
      .where('partner', '=', money.partner)
      .where('bank_account', '=', money.bank_account)
      // The plus keeps SQLite from using the index of amounts. A shop may ask for the same amount all day.
      .where(sql`+"orders"."amount"`, '=', money.amount)
      .where('trans_type', '=', money.trans_type)
      .orderBy('seq', 'desc')
      .limit(1)
      .executeTakeFirst();
    return found?.content;
  }

  /** Returns whether there is an order that such a payment would pay (PROTOCOL.md, clause CBK-6). */
  async hasOrder(money: PaymentDetails, atMs: number): Promise<boolean> {
    return (await findOrderFor(this.#db, money, atMs)) !== undefined;
  }

  #payments() {
    return this.#db.selectFrom('payments').selectAll().where(this.#history.counted(), '=', 1);
  }
}

/**
 * Finds the order of a payment: one that a box shows, or else the newest unpaid one, or else the newest paid one
 * (clause CBK-6).
 */
export async function findOrderFor(
  db: Kysely<Tables>,
  { partner, bank_account, content, amount, trans_type }: PaymentDetails,
  atMs: number,
): Promise<Selectable<Tables['orders']> | undefined> {
  const fits = expressionBuilder<Tables, 'orders'>().and({
    'orders.partner': partner,
    'orders.bank_account': bank_account,
    'orders.content': content,
    'orders.amount': amount,
    'orders.trans_type': trans_type,
  });
  // Open pushes are read first, because they are few. SQLite keeps the order of a cross join.
  const onBox = db
    .selectFrom('pushes')
    .crossJoin('orders')
    .selectAll('orders')
    .whereRef('orders.id', '=', 'pushes.order_ref')
    .where('pushes.status', 'in', OPEN_PUSH)
    .where('pushes.expires_at_ms', '>', atMs - CLOCK_ERROR_MS_MAX)
    .where(fits)
    .orderBy((it) => it('pushes.status', '=', 'shown'), 'desc')
    .orderBy('pushes.seq', 'desc')
    .limit(1);
  const newest = db.selectFrom('orders').selectAll().where(fits).orderBy('seq', 'desc').limit(1);
  return (
    (await onBox.executeTakeFirst()) ??
    // This is a literal, because with a parameter SQLite does not use the index of unpaid orders.
    (await newest.where('status', '<>', sql.lit('paid')).executeTakeFirst()) ??
    (await newest.where('status', '=', 'paid').executeTakeFirst())
  );
}
