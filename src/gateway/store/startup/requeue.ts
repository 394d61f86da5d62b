import type { Kysely } from 'kysely';
import type { Logger } from '../../../lib/log.ts';
import type { Quarantined } from '../integrity/checksums.ts';
import { type CreditSides, ON_TIME, sidesOf } from '../repositories/credit-sides.ts';
import { type Deliveries, enqueueDeliveries, orderWith } from '../repositories/payments.ts';
import { RegistryStore } from '../repositories/registry.ts';
import type { NewPayment, OrderRow, PaymentRow, Tables } from '../schema/tables.ts';

const BATCH_ROWS_MAX = 1000;
const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/;

/**
 * Returns the deliveries of a stored payment, without side effects. `order` is its order if that is intact, and `sides`
 * are those of its credit.
 */
export type DeliveriesFor = (
  payment: NewPayment,
  order: OrderRow | undefined,
  sides: CreditSides,
  registry: RegistryStore,
) => Promise<Deliveries>;

/** Recreates the damaged callbacks and notices of intact payments, in the caller's transaction (clause STO-4). */
export async function requeueDamaged(
  db: Kysely<Tables>,
  damaged: Quarantined,
  deliveriesFor: DeliveriesFor,
  log: Logger,
): Promise<void> {
  const lost = new Set(damaged.payments.map((it) => it.id));
  const registry = new RegistryStore(db);
  const deliveriesOf = async (payment: PaymentRow) => {
    const order = payment.order_ref === null ? undefined : await orderWith(db, payment.order_ref);
    const sides = (await sidesOf(db, [payment])).get(payment.id) ?? ON_TIME;
    return deliveriesFor(payment, order, sides, registry);
  };
  for await (const { payment, row } of paymentsOf(db, 'callbacks', damaged.callbacks, lost)) {
    const { callback } = await deliveriesOf(payment);
    if (callback === undefined) {
      log.error('callback-not-requeued', { payment: payment.id, reason: `${payment.partner} has no callback URL` });
      continue;
    }
    const id = UUID.test(String(row?.id)) ? String(row?.id) : callback.id;
    await enqueueDeliveries(db, payment, { notices: [], callback: { ...callback, id } }, payment.paid_at_ms);
    log.warn('callback-requeued', { payment: payment.id, callback: id });
  }
  for await (const { payment, row } of paymentsOf(db, 'notices', damaged.notices, lost)) {
    const all = (await deliveriesOf(payment)).notices;
    const named = all.filter((it) => it.terminal_code === row?.terminal_code);
    const stored = db.selectFrom('notices').select('terminal_code').where('payment_id', '=', payment.id);
    const intact = new Set((await stored.execute()).map((it) => it.terminal_code));
    const notices = (named.length > 0 ? named : all).filter((it) => !intact.has(it.terminal_code));
    await enqueueDeliveries(db, payment, { notices, callback: undefined }, payment.paid_at_ms);
    const boxes = notices.map((it) => it.terminal_code).join(', ');
    if (notices.length > 0) log.warn('notice-requeued', { payment: payment.id, boxes });
  }
}

/**
 * Yields the payment of each damaged row. A row without a valid payment id may belong to any payment that has no row in
 * this table. So these payments are yielded too, without a row.
 */
async function* paymentsOf<Row extends Record<'payment_id', unknown>>(
  db: Kysely<Tables>,
  table: 'callbacks' | 'notices',
  rows: Row[],
  lost: ReadonlySet<unknown>,
): AsyncGenerator<{ payment: PaymentRow; row: Row | undefined }, void> {
  const payments = db.selectFrom('payments').selectAll();
  let isUnknown = false;
  for (const row of rows) {
    const payment = await payments.where('id', '=', String(row.payment_id)).executeTakeFirst();
    if (payment !== undefined) yield { payment, row };
    else if (!lost.has(row.payment_id)) isUnknown = true;
  }
  let after = 0;
  while (isUnknown) {
    const batch = await payments
      .where('id', 'not in', db.selectFrom(table).select('payment_id'))
      .where('seq', '>', after)
      .orderBy('seq')
      .limit(BATCH_ROWS_MAX)
      .execute();
    for (const payment of batch) yield { payment, row: undefined };
    after = batch.at(-1)?.seq ?? after;
    isUnknown = batch.length === BATCH_ROWS_MAX;
  }
}
