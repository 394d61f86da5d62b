import { expressionBuilder, type Kysely, sql } from 'kysely';
import { intact } from '../integrity/checksums.ts';
import { CLOCK_ERROR_MS_MAX, OPEN_PUSH, type OrderRow, type Tables } from '../schema/tables.ts';

/** What a payment and an order have in common (PROTOCOL.md, clause CBK-6). */
export type PaymentDetails = Pick<OrderRow, 'partner' | 'bank_account' | 'content' | 'amount' | 'trans_type'>;

/** The order of this money that a box shows, else the newest unpaid, else the newest paid (clause CBK-6). Throws when it is damaged. */
export async function findOrderFor(
  db: Kysely<Tables>,
  money: PaymentDetails,
  atMs: number,
): Promise<OrderRow | undefined> {
  const { partner, bank_account, content, amount, trans_type } = money;
  const isOfMoney = expressionBuilder<Tables, 'orders'>().and({
    'orders.partner': partner,
    'orders.bank_account': bank_account,
    'orders.content': content,
    'orders.amount': amount,
    'orders.trans_type': trans_type,
  });
  // The open pushes first, which are few; SQLite takes a cross join as it is written.
  const onBox = db
    .selectFrom('pushes')
    .crossJoin('orders')
    .selectAll('orders')
    .whereRef('orders.id', '=', 'pushes.order_ref')
    .where('pushes.status', 'in', OPEN_PUSH)
    .where('pushes.expires_at_ms', '>', atMs - CLOCK_ERROR_MS_MAX)
    .where(isOfMoney)
    .orderBy((it) => it('pushes.status', '=', 'shown'), 'desc')
    .orderBy('pushes.seq', 'desc')
    .limit(1);
  const newest = db.selectFrom('orders').selectAll().where(isOfMoney).orderBy('seq', 'desc').limit(1);
  const found =
    (await onBox.executeTakeFirst()) ??
    // Written out, for the index of unpaid orders.
    (await newest.where('status', '<>', sql.lit('paid')).executeTakeFirst()) ??
    (await newest.where('status', '=', 'paid').executeTakeFirst());
  return intact('orders', found);
}
