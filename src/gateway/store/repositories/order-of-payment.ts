import { expressionBuilder, type Kysely, type Selectable, sql } from 'kysely';
import { CLOCK_ERROR_MS_MAX, OPEN_PUSH, type PaymentDetails, type Tables } from '../schema/tables.ts';

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
