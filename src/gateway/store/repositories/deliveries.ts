import type { Kysely } from 'kysely';
import type { Logger } from '../../../lib/log.ts';
import type { Quarantined } from '../integrity/checksums.ts';
import type { CallbackRow, NoticeRow, OrderRow, PaymentRow, Tables } from '../schema/tables.ts';
import { nextSeq } from './seq.ts';

/** Payments read at a time. */
const BATCH_ROWS_MAX = 1000;
const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/;

export type NewPayment = Omit<PaymentRow, 'seq'>;
/** A box that is told of a payment: at once, or when it is there. */
export type NewNotice = Pick<NoticeRow, 'terminal_code' | 'push_id' | 'told_at_ms'>;
export type NewCallback = Pick<CallbackRow, 'id' | 'url' | 'body'>;
/** Who is to be told of a payment. */
export interface Deliveries {
  notices: NewNotice[];
  callback: NewCallback | undefined;
}
/** Says, without side effects, what is owed for a payment that is kept, with its order where that is whole. */
export type DeliveriesFor = (payment: NewPayment, order: OrderRow | undefined) => Deliveries;

/** Keeps what is owed for a payment, in the caller's transaction. */
export async function enqueue(
  db: Kysely<Tables>,
  payment: NewPayment,
  { notices: told, callback }: Deliveries,
  atMs: number,
) {
  const { id: payment_id, partner } = payment;
  for (const box of told) {
    const state = { created_at_ms: atMs, reported_at_ms: null, recorded: null };
    await db
      .insertInto('notices')
      .values({ payment_id, ...box, ...state })
      .execute();
  }
  if (callback === undefined) return;
  const begun = { status: 'pending', warning: null, tries: 0, next_at_ms: atMs, created_at_ms: atMs } as const;
  await db
    .insertInto('callbacks')
    .values({ ...callback, ...begun, payment_id, partner, seq: nextSeq('callbacks') })
    .execute();
}

/**
 * Owes anew what was in damaged callbacks and notices that were set aside, for the payments that are whole, in the
 * caller's transaction (PROTOCOL.md, clause STO-4).
 */
export async function requeueDamaged(
  db: Kysely<Tables>,
  aside: Quarantined,
  owedFor: DeliveriesFor,
  log: Logger,
): Promise<void> {
  const lost = new Set(aside.payments.map((it) => it.id));
  for await (const { payment, row } of concerned(db, 'callbacks', aside.callbacks, lost)) {
    const { callback } = owedFor(payment, await orderOf(db, payment));
    if (callback === undefined) {
      log.error('store-owed-to-nobody', { payment: payment.id, reason: `${payment.partner} has no callback URL` });
      continue;
    }
    const id = UUID.test(String(row?.id)) ? String(row?.id) : callback.id;
    await enqueue(db, payment, { notices: [], callback: { ...callback, id } }, payment.paid_at_ms);
    log.warn('store-owed-anew', { payment: payment.id, callback: id });
  }
  for await (const { payment, row } of concerned(db, 'notices', aside.notices, lost)) {
    const boxes = owedFor(payment, await orderOf(db, payment)).notices;
    const named = boxes.filter((it) => it.terminal_code === row?.terminal_code);
    const kept = await db.selectFrom('notices').select('terminal_code').where('payment_id', '=', payment.id).execute();
    const isKept = (box: NewNotice) => kept.some((it) => it.terminal_code === box.terminal_code);
    const told = (named.length > 0 ? named : boxes).filter((box) => !isKept(box));
    await enqueue(db, payment, { notices: told, callback: undefined }, payment.paid_at_ms);
    const boxesTold = told.map((it) => it.terminal_code).join(', ');
    if (told.length > 0) log.warn('store-owed-anew', { payment: payment.id, boxes: boxesTold });
  }
}

/**
 * The payments that these rows were for, each with its row. A row whose payment cannot be told from it is for one of
 * those that have no such row at all: they come without one.
 */
async function* concerned<Row extends Record<'payment_id', unknown>>(
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

async function orderOf(db: Kysely<Tables>, { order_ref }: NewPayment): Promise<OrderRow | undefined> {
  if (order_ref === null) return undefined;
  return db.selectFrom('orders').selectAll().where('id', '=', order_ref).executeTakeFirst();
}
