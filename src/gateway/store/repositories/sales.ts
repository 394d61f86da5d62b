import { type Kysely, sql } from 'kysely';
import type { Logger } from '../../../lib/log.ts';
import { intact, onlyIntact } from '../integrity/checksums.ts';
import type { NewOrder, OrderRow, PaymentRow, Tables } from '../schema/tables.ts';
import { transact } from '../transact.ts';
import type { ModeHistory } from './mode-history.ts';
import { addOrder, type OrderSides } from './order-changes.ts';
import { seqOf } from './seq.ts';

/** An order that a cashier made, with the money that was paid for it, oldest first. */
export interface Sale {
  order: OrderRow;
  /** The name of the cashier's token. Null for a sale of an earlier version. */
  soldBy: string | null;
  payments: PaymentRow[];
}

/** A span of calendar time, from `fromMs` until before `toMs`. */
export interface Period {
  fromMs: number;
  toMs: number;
}

/** The terminalCodes of the boxes whose sales are read. Undefined for all boxes. */
type OfBoxes = readonly string[] | undefined;

/** Stores orders that cashiers make without a back end. */
export class SaleStore {
  readonly #db: Kysely<Tables>;
  readonly #log: Logger;
  readonly #history: ModeHistory;

  /** Payments that do not count according to `history` are left out everywhere (PROTOCOL.md, clause MOD-3). */
  constructor(db: Kysely<Tables>, log: Logger, history: ModeHistory) {
    this.#db = db;
    this.#log = log;
    this.#history = history;
  }

  /** Stores a sale with the code in its content. Stores nothing and returns false if the account has that code. */
  add(order: NewOrder, soldBy: string, sides: OrderSides): Promise<boolean> {
    return transact(this.#db, async (trx) => {
      if (!(await addOrder(trx, order, sides))) return false;
      const sale = { order_ref: order.id, created_at_ms: order.created_at_ms, sold_by: soldBy };
      await trx.insertInto('sales').values(sale).execute();
      return true;
    });
  }

  /** Returns a sale by the id of its order or by its code. */
  async find(idOrCode: string, boxes?: OfBoxes): Promise<Sale | undefined> {
    const row = this.#sales(boxes)
      .selectAll('orders')
      .where((it) => it.or([it('orders.id', '=', idOrCode), it('orders.order_id', '=', idOrCode)]))
      .limit(1);
    const order = intact('orders', await row.executeTakeFirst());
    return order === undefined ? undefined : (await this.#withPayments([order]))[0];
  }

  /** Returns the sales of a period, newest first. With `before`, an id, only older ones. */
  async made({ fromMs, toMs }: Period, limit: number, before?: string, boxes?: OfBoxes): Promise<Sale[]> {
    let rows = this.#sales(boxes)
      .selectAll('orders')
      .where('sales.created_at_ms', '>=', fromMs)
      .where('sales.created_at_ms', '<', toMs);
    if (before !== undefined) rows = rows.where('orders.seq', '<', seqOf('orders', before));
    const orders = await rows.orderBy('orders.seq', 'desc').limit(limit).execute();
    return this.#withPayments(onlyIntact('orders', orders, this.#log));
  }

  /** Returns the number of sales in a period, how many of them are paid in full, and the money paid for them. */
  async sum({ fromMs, toMs }: Period, boxes?: OfBoxes): Promise<{ sales: number; paid: number; amount: number }> {
    const paid = sql<number>`(select coalesce(sum("payments"."amount" * ${this.#history.counted()}), 0)
      from "payments" where "payments"."order_ref" = "sales"."order_ref")`;
    const each = this.#sales(boxes)
      .select(['orders.amount as asked', paid.as('paid')])
      .where('sales.created_at_ms', '>=', fromMs)
      .where('sales.created_at_ms', '<', toMs);
    const sums = await this.#db
      .selectFrom(each.as('each_sale'))
      .select((it) => [
        it.fn.countAll<number>().as('sales'),
        sql<number>`cast(coalesce(sum(case when paid >= asked then 1 else 0 end), 0) as bigint)`.as('paid'),
        sql<number>`cast(coalesce(sum(paid), 0) as bigint)`.as('amount'),
      ])
      .executeTakeFirstOrThrow();
    return { sales: Number(sums.sales), paid: Number(sums.paid), amount: Number(sums.amount) };
  }

  #sales(boxes: OfBoxes) {
    const sales = this.#db.selectFrom('sales').innerJoin('orders', 'orders.id', 'sales.order_ref');
    return boxes === undefined ? sales : sales.where('orders.terminal_code', 'in', boxes);
  }

  async #withPayments(orders: readonly OrderRow[]): Promise<Sale[]> {
    if (orders.length === 0) return [];
    const ids = orders.map(({ id }) => id);
    const found = await this.#db
      .selectFrom('payments')
      .selectAll()
      .where('order_ref', 'in', ids)
      .orderBy('seq')
      .execute();
    const payments = onlyIntact('payments', found, this.#log).filter(({ seq }) => this.#history.counts(seq));
    const sales = await this.#db.selectFrom('sales').selectAll().where('order_ref', 'in', ids).execute();
    const sellers = new Map(sales.map((it) => [it.order_ref, it.sold_by]));
    return orders.map((order) => ({
      order,
      soldBy: sellers.get(order.id) ?? null,
      payments: payments.filter((it) => it.order_ref === order.id),
    }));
  }
}
