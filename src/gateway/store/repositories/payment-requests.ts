import type { Kysely } from 'kysely';
import type { Logger } from '../../../lib/log.ts';
import { intact, onlyIntact } from '../integrity/checksums.ts';
import type { OrderStatus, PaymentRequestRow, Tables } from '../schema/tables.ts';

/** At most this many accounts behind the names of a few credits are read. */
const NAMES_READ_MAX = 100;
/** An order in one of these statuses needs no QR any more. An order that was replaced or failed may be pushed again. */
const OVER: readonly OrderStatus[] = ['underpaid', 'expired', 'dismissed', 'cancelled'];

/** A request whose order has ended. */
export interface EndedRequest {
  order_code: number;
  isPaid: boolean;
}

/** Stores the orders for which sources collect (PROTOCOL.md, clause PQR). */
export class PaymentRequestStore {
  readonly #db: Kysely<Tables>;
  readonly #log: Logger;

  constructor(db: Kysely<Tables>, log: Logger) {
    this.#db = db;
    this.#log = log;
  }

  /** Returns the account of the order that has this number at this source. */
  async accountOf(source: string, orderCode: number): Promise<string | undefined> {
    return intact('payment_requests', await requestOf(this.#db, source, orderCode))?.bank_account;
  }

  /** Returns the main account of this virtual account, if a request of a source has named it. */
  async accountBehind(name: string): Promise<string | undefined> {
    return (await accountsBehind(this.#db, [name])).get(name);
  }

  /** Returns the request for the newest order of an account with this QR. */
  async ofQr(bankAccount: string, qrCode: string): Promise<PaymentRequestRow | undefined> {
    const row = await this.#db
      .selectFrom('payment_requests')
      .innerJoin('orders', 'orders.id', 'payment_requests.order_ref')
      .selectAll('payment_requests')
      .where('orders.qr_code', '=', qrCode)
      .where('payment_requests.bank_account', '=', bankAccount)
      .orderBy('orders.seq', 'desc')
      .limit(1)
      .executeTakeFirst();
    return intact('payment_requests', row);
  }

  /** Returns the newest requests of a source that may still get money. */
  async open(source: string, limit: number): Promise<PaymentRequestRow[]> {
    const rows = this.#db.selectFrom('payment_requests').selectAll().where('source', '=', source);
    const open = rows.where('closed_at_ms', 'is', null).orderBy('created_at_ms', 'desc').limit(limit);
    return onlyIntact('payment_requests', await open.execute(), this.#log);
  }

  /**
   * Ends the oldest requests that are over: their order has ended or was paid before `paidBeforeMs`, or they have
   * expired. From then on the gateway does not push their QRs.
   */
  async end(source: string, atMs: number, paidBeforeMs: number, limit: number): Promise<EndedRequest[]> {
    const rows = await this.#db
      .selectFrom('payment_requests')
      .innerJoin('orders', 'orders.id', 'payment_requests.order_ref')
      .select(['order_code', 'orders.status'])
      .where('source', '=', source)
      .where('closed_at_ms', 'is', null)
      .where((it) =>
        it.or([
          it('orders.status', 'in', OVER),
          it.and([it('orders.status', '=', 'paid'), it('orders.updated_at_ms', '<', paidBeforeMs)]),
          it('expires_at_ms', '<=', atMs),
          it('ended_at_ms', 'is not', null),
        ]),
      )
      .orderBy('payment_requests.created_at_ms')
      .limit(limit)
      .execute();
    const ended = this.#db.updateTable('payment_requests').set({ ended_at_ms: atMs }).where('source', '=', source);
    const orderCodes = rows.map((it) => it.order_code);
    if (rows.length > 0) await ended.where('order_code', 'in', orderCodes).where('ended_at_ms', 'is', null).execute();
    return rows.map(({ status, ...row }) => ({ ...row, isPaid: status === 'paid' }));
  }

  /** Closes a request: the source accepts no more money for this order, and all money that it accepted is stored. */
  async close(source: string, orderCode: number, atMs: number): Promise<void> {
    const closed = this.#db.updateTable('payment_requests').set({ closed_at_ms: atMs }).where('source', '=', source);
    await closed.where('order_code', '=', orderCode).where('closed_at_ms', 'is', null).execute();
  }
}

function requestOf(db: Kysely<Tables>, source: string, orderCode: number) {
  const rows = db.selectFrom('payment_requests').selectAll().where('source', '=', source);
  return rows.where('order_code', '=', orderCode).executeTakeFirst();
}

/** Returns the order for which a source collects under this number. */
export async function orderOfRequest(
  db: Kysely<Tables>,
  source: string,
  orderCode: number,
): Promise<{ id: string; bank_account: string } | undefined> {
  const row = intact('payment_requests', await requestOf(db, source, orderCode));
  return row && { id: row.order_ref, bank_account: row.bank_account };
}

/** Returns the main account of each virtual account that a request of a source has named. */
export async function accountsBehind(
  db: Kysely<Tables>,
  names: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const rows = await db
    .selectFrom('payment_requests')
    .select(['virtual_account', 'bank_account'])
    .where('virtual_account', 'in', names)
    .where('virtual_account', '<>', '')
    .distinct()
    .limit(NAMES_READ_MAX)
    .execute();
  return new Map(rows.map((it) => [it.virtual_account, it.bank_account]));
}
