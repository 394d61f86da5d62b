import { type Kysely, sql } from 'kysely';
import type { EndedHow } from '../../../protocol/messages.ts';
import {
  type NewOrder,
  type NewPaymentRequest,
  type NewPush,
  OPEN_PUSH,
  type OrderStatus,
  type PushRow,
  type PushStatus,
  type Tables,
} from '../schema/tables.ts';
import { insertQrCode } from './qr-codes.ts';
import { nextSeq } from './seq.ts';

export const ORDER_AFTER: Record<EndedHow, OrderStatus> = {
  expired: 'expired',
  replaced: 'replaced',
  withdrawn: 'cancelled',
  dismissed: 'dismissed',
  interrupted: 'failed',
};

/** Inserts an order. `pushId` is the push that is sent with it. */
export async function insertOrder(db: Kysely<Tables>, order: NewOrder, pushId?: string): Promise<void> {
  const pushed = { failure: null, last_push_id: pushId ?? null, shown_on: null, shown_push_id: null };
  const status: OrderStatus = pushId === undefined ? 'created' : 'pushed';
  const begun = { status, paid_at_ms: null, updated_at_ms: order.created_at_ms };
  await db
    .insertInto('orders')
    .values({ ...order, ...pushed, ...begun, seq: nextSeq(db, 'orders') })
    .execute();
}

/** The rows that are stored together with an order. */
export interface OrderSides {
  /** The name in the link to the picture of its QR. */
  qrRef?: string;
  /** The code by which the text of a bank names the order. */
  code?: string | undefined;
  /** Set if a source collects for the order. */
  request?: NewPaymentRequest | undefined;
}

/** Inserts an order with its sides. Inserts nothing and returns false if another order of the account has the code. */
export async function addOrder(
  db: Kysely<Tables>,
  order: NewOrder,
  { qrRef, code, request }: OrderSides,
): Promise<boolean> {
  const { bank_account, id: order_ref, created_at_ms } = order;
  if (code !== undefined) {
    const added = await db
      .insertInto('order_codes')
      .values({ bank_account, code, order_ref, created_at_ms })
      .onConflict((it) => it.doNothing())
      .executeTakeFirst();
    if (added.numInsertedOrUpdatedRows === 0n) return false;
  }
  if (qrRef !== undefined) await insertQrCode(db, qrRef, order.qr_code, created_at_ms);
  if (request !== undefined) {
    const row = { ...request, order_ref, bank_account, ended_at_ms: null, closed_at_ms: null };
    await db.insertInto('payment_requests').values(row).execute();
  }
  await insertOrder(db, order);
  return true;
}

/** The columns of a push that change while it is on its way. */
type PushProgress = Pick<PushRow, 'status' | 'code' | 'confirmed_at_ms' | 'ended_at_ms'>;

/** Changes a push of this box if its status is in `among`. Returns whether it was. */
export async function changePush(
  db: Kysely<Tables>,
  { id, terminalCode, among }: { id: string; terminalCode: string; among: readonly PushStatus[] },
  change: Partial<PushProgress>,
): Promise<boolean> {
  const changed = await db
    .updateTable('pushes')
    .set(change)
    .where('id', '=', id)
    .where('terminal_code', '=', terminalCode)
    .where('status', 'in', among)
    .executeTakeFirst();
  return changed.numUpdatedRows > 0n;
}

/**
 * The order that a partner pushes, as his call has seen it: there is none, or it has this newest push and status. A
 * second call at another gateway may have pushed it since (clause SND-9).
 */
export type SeenOrder = 'no order' | { lastPushId: string | null; status: OrderStatus };

/** A push is stored only if all of this still holds. */
export interface Expected {
  /** The box may show a QR of this account. */
  bankAccount?: string | undefined;
  seen?: SeenOrder | undefined;
  /** This push is still the newest one of the box. */
  newestOnBox?: string | undefined;
}

/** The reason why a push was not stored. */
export type PushProblem = LinkProblem | 'pushed meanwhile';

/** Returns whether the partner has an order with the QR and the orderId of this new one. */
export async function isPushed(db: Kysely<Tables>, { partner, qr_code, order_id }: NewOrder): Promise<boolean> {
  const same = db.selectFrom('orders').select('id').where('qr_code', '=', qr_code).where('partner', '=', partner);
  return (await same.where('order_id', '=', order_id).limit(1).executeTakeFirst()) !== undefined;
}

/** Returns whether a box has a newer push than this one. */
export async function hasNewerPush(db: Kysely<Tables>, terminalCode: string, pushId: string): Promise<boolean> {
  const pushes = db.selectFrom('pushes').select('id').where('terminal_code', '=', terminalCode);
  return (await pushes.orderBy('seq', 'desc').limit(1).executeTakeFirst())?.id !== pushId;
}

/** Makes this push the newest one of its order. Returns false if the order has another newest one than `seen`. */
export async function setOrderPushed(
  db: Kysely<Tables>,
  { id, order_ref, created_at_ms }: NewPush,
  seen: SeenOrder | undefined,
): Promise<boolean> {
  let order = db
    .updateTable('orders')
    .set({ last_push_id: id, failure: null, updated_at_ms: created_at_ms })
    .where('id', '=', order_ref);
  if (typeof seen === 'object') {
    order = order.where('last_push_id', 'is not distinct from', seen.lastPushId).where('status', '=', seen.status);
  }
  const pushed = await order.executeTakeFirst();
  if (pushed.numUpdatedRows === 0n) return false;
  await setOrderStatus(db, id, 'pushed', created_at_ms);
  return true;
}

/** Records that a box shows the order. Only its newest push counts. A paid order stays paid. */
export async function setOrderShown(
  db: Kysely<Tables>,
  { pushId, terminalCode }: { pushId: string; terminalCode: string },
  atMs: number,
): Promise<void> {
  const isPaid = sql<boolean>`status = ${sql.lit('paid')}`;
  await db
    .updateTable('orders')
    .set({
      shown_on: terminalCode,
      shown_push_id: pushId,
      status: sql`case when ${isPaid} then status else ${sql.lit('shown')} end`,
      updated_at_ms: sql`case when ${isPaid} then updated_at_ms else ${atMs} end`,
    })
    .where('last_push_id', '=', pushId)
    .execute();
}

/** Sets the status of the order whose newest push this is. A paid order stays paid. */
export async function setOrderStatus(
  db: Kysely<Tables>,
  pushId: string,
  status: OrderStatus,
  atMs: number,
): Promise<void> {
  await db
    .updateTable('orders')
    .set({ status, updated_at_ms: atMs })
    .where('last_push_id', '=', pushId)
    // A literal: a parameter is compared with the index of unpaid orders, and SQLite prepares the statement again each time.
    .where('status', '<>', sql.lit('paid'))
    .execute();
}

/** Ends a push in the caller's transaction. Returns whether it belongs to this box. */
export async function endPush(
  db: Kysely<Tables>,
  push: { id: string; terminalCode: string },
  how: EndedHow,
  atMs: number,
): Promise<boolean> {
  if (await changePush(db, { ...push, among: OPEN_PUSH }, { status: 'ended', ended_at_ms: atMs })) {
    await setOrderStatus(db, push.id, ORDER_AFTER[how], atMs);
    return true;
  }
  return changePush(db, { ...push, among: ['failed', 'cancelled', 'ended'] }, { ended_at_ms: atMs });
}

/** The reason why a box must not show a QR of an account. `linked` means that the box is linked to another account. */
export type LinkProblem = 'no box' | 'box disabled' | 'no account' | 'linked';

/** Returns why a box must not show a QR of this account, as the caller's transaction sees them. */
export async function linkProblem(
  db: Kysely<Tables>,
  terminalCode: string,
  bankAccount: string,
): Promise<LinkProblem | undefined> {
  const box = await db
    .selectFrom('boxes')
    .leftJoin('accounts', 'accounts.bank_account', 'boxes.account')
    .select(['boxes.account', 'boxes.disabled', 'accounts.disabled as account_disabled'])
    .where('boxes.terminal_code', '=', terminalCode)
    .executeTakeFirst();
  if (box === undefined) return 'no box';
  if (box.disabled === 1) return 'box disabled';
  if (box.account !== bankAccount) return 'linked';
  return box.account_disabled === 0 ? undefined : 'no account';
}

/** A push that its box must withdraw. */
export interface WithdrawnPush {
  id: string;
  terminal_code: string;
}

/** The result of a cancellation. */
export interface Cancellation {
  /** True if it changed anything. An order that has ended stays as it is. */
  hasChanged: boolean;
  /** Pushes of the order that a box may show. The gateway must withdraw them. */
  withdrawn: WithdrawnPush[];
}

/** The statuses in which an order can be cancelled: it waits for its money, although a box may not show it. */
const CANCELLABLE: readonly OrderStatus[] = ['created', 'pushed', 'shown', 'replaced', 'failed'];

/** Cancels an order that has not ended, and its open pushes. Returns undefined if the order is paid or unknown. */
export async function cancelOrder(
  db: Kysely<Tables>,
  orderRef: string,
  atMs: number,
): Promise<Cancellation | undefined> {
  const order = await db.selectFrom('orders').select('status').where('id', '=', orderRef).executeTakeFirst();
  if (order === undefined || order.status === 'paid') return undefined;
  const hasEnded = !CANCELLABLE.includes(order.status);
  if (!hasEnded) {
    const cancelled = { status: 'cancelled', updated_at_ms: atMs } as const;
    await db.updateTable('orders').set(cancelled).where('id', '=', orderRef).execute();
  }
  const withdrawn = await db
    .updateTable('pushes')
    .set({ status: 'cancelled' })
    .where('order_ref', '=', orderRef)
    .where('status', 'in', OPEN_PUSH)
    .returning(['id', 'terminal_code'])
    .execute();
  return { hasChanged: !hasEnded || withdrawn.length > 0, withdrawn };
}
