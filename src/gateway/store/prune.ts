import type { Kysely } from 'kysely';
import { recordPruned } from './integrity/ledger.ts';
import { CLOCK_ERROR_MS_MAX, type Tables } from './schema/tables.ts';

/** What is over is kept for so long … */
const KEPT_MS = 30 * 86_400_000;
/** … and of each kind the newest so many. */
const KEPT_MAX = 100_000;
/** Rows looked at in one transaction: whatever else there is to do waits for no more than that. */
const BATCH_ROWS_MAX = 20;

export interface RetentionLimits {
  keptMs: number;
  keptMax: number;
}

/** What one transaction deleted; an order goes with the pushes that it has left, a payment with its notices and callbacks. */
export interface Pruned {
  kind: 'pushes' | 'orders' | 'payments' | 'qrCodes';
  deleted: number;
  /** Of the payments, those that their partner was never told. */
  undelivered?: number;
}

/** What is due to go: the rows up to a `seq`, and those that were last changed before a time. */
interface Due {
  uptoSeq: number;
  beforeMs: number;
}

/** The `seq` up to which the rows were looked at, and the newest time at which one of them was made. */
interface Cursor {
  seq: number;
  madeMs: number;
}

interface Row {
  id: string;
  seq: number;
  madeMs: number;
  changedMs: number;
}

/** How many are gone, and where there may be more. */
interface Batch {
  deleted: number;
  untold?: number;
  next: Cursor;
}

const START: Cursor = { seq: 0, madeMs: Number.NEGATIVE_INFINITY };

/**
 * Deletes what is older than 30 days or beyond the newest 100,000, oldest first, a batch each time that it is asked to
 * go on. Never an order or a push that a box may still show, nor a payment that a box has not reported or that a partner
 * is still to be told: those are kept whatever their age and number. One whose callback has failed goes by number only.
 * Pushes first: an order that was asked for again and again would else go with all of them at once, or never.
 */
export async function* prune(
  db: Kysely<Tables>,
  atMs: number,
  { keptMs, keptMax }: RetentionLimits = { keptMs: KEPT_MS, keptMax: KEPT_MAX },
): AsyncGenerator<Pruned, void> {
  const beforeMs = atMs - keptMs;
  const prunings = { pushes: prunePushes, orders: pruneOrders, payments: prunePayments };
  for (const kind of ['pushes', 'orders', 'payments'] as const) {
    const due = { beforeMs, uptoSeq: await newestBeyond(db, kind, keptMax) };
    for (let cursor: Cursor | undefined = START; cursor !== undefined; ) {
      const from: Cursor = cursor;
      const batch: Batch | undefined = await db.transaction().execute((trx) => prunings[kind](trx, from, due, atMs));
      if (batch !== undefined) {
        const { next: _next, ...pruned } = batch;
        yield { kind, ...pruned };
      }
      cursor = batch?.next;
    }
  }
  for (let deleted = BATCH_ROWS_MAX; deleted === BATCH_ROWS_MAX; ) {
    deleted = await pruneQrCodes(db, beforeMs, keptMax);
    if (deleted > 0) yield { kind: 'qrCodes', deleted };
  }
}

/** The highest `seq` that is beyond the newest `keptMax`; 0 when there are not so many. */
async function newestBeyond(db: Kysely<Tables>, table: Exclude<Pruned['kind'], 'qrCodes'>, keptMax: number) {
  const rows = db.selectFrom(table).select('seq').orderBy('seq', 'desc').limit(1).offset(keptMax);
  return (await rows.executeTakeFirst())?.seq ?? 0;
}

/** An order keeps its newest push and the one that was shown last; a box that is away keeps what it has not ended. */
async function prunePushes(db: Kysely<Tables>, from: Cursor, due: Due, atMs: number): Promise<Batch | undefined> {
  const rows = await db
    .selectFrom('pushes')
    .select(['id', 'seq', 'created_at_ms as madeMs', 'created_at_ms as changedMs'])
    .where('seq', '>', from.seq)
    .orderBy('seq')
    .limit(BATCH_ROWS_MAX)
    .execute();
  return deleteDue(rows, from, due, async (ids) => {
    const kept = await db
      .selectFrom('pushes')
      .innerJoin('orders', 'orders.id', 'pushes.order_ref')
      .select('pushes.id as id')
      .where('pushes.id', 'in', ids)
      .where((it) =>
        it.or([
          it('pushes.expires_at_ms', '>', atMs - CLOCK_ERROR_MS_MAX),
          it.and([it('pushes.ended_at_ms', 'is', null), it('pushes.expires_at_ms', '>=', due.beforeMs)]),
          it('orders.last_push_id', '=', it.ref('pushes.id')),
          it('orders.shown_push_id', '=', it.ref('pushes.id')),
        ]),
      )
      .execute();
    const over = without(ids, kept);
    if (over.length > 0) await db.deleteFrom('pushes').where('id', 'in', over).execute();
    return over.length;
  });
}

async function pruneOrders(db: Kysely<Tables>, from: Cursor, due: Due, atMs: number): Promise<Batch | undefined> {
  const rows = await db
    .selectFrom('orders')
    .select(['id', 'seq', 'created_at_ms as madeMs', 'updated_at_ms as changedMs'])
    .where('seq', '>', from.seq)
    .orderBy('seq')
    .limit(BATCH_ROWS_MAX)
    .execute();
  return deleteDue(rows, from, due, async (ids) => {
    const onBox = await db
      .selectFrom('pushes')
      .select('order_ref as id')
      .where('order_ref', 'in', ids)
      .where('expires_at_ms', '>', atMs - CLOCK_ERROR_MS_MAX)
      .where('ended_at_ms', 'is', null)
      .execute();
    const over = without(ids, onBox);
    if (over.length === 0) return 0;
    await db.deleteFrom('pushes').where('order_ref', 'in', over).execute();
    await db.deleteFrom('orders').where('id', 'in', over).execute();
    return over.length;
  });
}

async function prunePayments(db: Kysely<Tables>, from: Cursor, due: Due): Promise<Batch | undefined> {
  const rows = await db
    .selectFrom('payments')
    .select(['id', 'seq', 'paid_at_ms as madeMs', 'paid_at_ms as changedMs'])
    .where('seq', '>', from.seq)
    .orderBy('seq')
    .limit(BATCH_ROWS_MAX)
    .execute();
  let untold = 0;
  const batch = await deleteDue(rows, from, due, async (ids) => {
    const unreported = db.selectFrom('notices').select('payment_id as id').where('reported_at_ms', 'is', null);
    const callbacks = db.selectFrom('callbacks').select('payment_id as id');
    const failed = await callbacks.where('status', '=', 'failed').where('payment_id', 'in', ids).execute();
    const young = new Set(rows.filter(({ seq }) => seq > due.uptoSeq).map(({ id }) => id));
    const over = without(ids, [
      ...failed.filter(({ id }) => young.has(id)),
      ...(await unreported.where('payment_id', 'in', ids).execute()),
      ...(await callbacks.where('status', '=', 'pending').where('payment_id', 'in', ids).execute()),
    ]);
    if (over.length === 0) return 0;
    untold = over.length - without(over, failed).length;
    await deletePayments(db, over);
    return over.length;
  });
  return batch && { ...batch, untold };
}

async function deletePayments(db: Kysely<Tables>, ids: string[]): Promise<void> {
  const callbacks = db.selectFrom('callbacks').select('id').where('payment_id', 'in', ids);
  await db.deleteFrom('callback_attempts').where('callback_id', 'in', callbacks).execute();
  await db.deleteFrom('callbacks').where('payment_id', 'in', ids).execute();
  await db.deleteFrom('notices').where('payment_id', 'in', ids).execute();
  await recordPruned(db, ids);
  await db.deleteFrom('payments').where('id', 'in', ids).execute();
}

/**
 * Has those of the rows deleted that are due; `undefined` when none of them is. A row is never taken for older than those
 * before it: a calendar that was set back when it was made does not count.
 */
async function deleteDue(
  rows: Row[],
  from: Cursor,
  { uptoSeq, beforeMs }: Due,
  deleteOver: (ids: string[]) => Promise<number>,
): Promise<Batch | undefined> {
  const ids: string[] = [];
  let next = from;
  for (const { id, seq, madeMs, changedMs } of rows) {
    next = { seq, madeMs: Math.max(next.madeMs, madeMs) };
    if (seq <= uptoSeq || Math.max(changedMs, next.madeMs) < beforeMs) ids.push(id);
  }
  return ids.length === 0 ? undefined : { deleted: await deleteOver(ids), next };
}

function without(ids: string[], kept: { id: string }[]): string[] {
  const keptIds = new Set(kept.map((it) => it.id));
  return ids.filter((id) => !keptIds.has(id));
}

/** A QR that was made is only a picture to look at, which nothing waits for. */
async function pruneQrCodes(db: Kysely<Tables>, beforeMs: number, keptMax: number): Promise<number> {
  const beyond = await db
    .selectFrom('qr_codes')
    .select(['created_at_ms', 'ref'])
    .orderBy('created_at_ms', 'desc')
    .orderBy('ref', 'desc')
    .limit(1)
    .offset(keptMax)
    .executeTakeFirst();
  const { created_at_ms: beyondMs = 0, ref = '' } = beyond ?? {};
  const due = db
    .selectFrom('qr_codes')
    .select('ref')
    .where((it) =>
      it.or([
        it('created_at_ms', '<', Math.max(beforeMs, beyondMs)),
        it.and([it('created_at_ms', '=', beyondMs), it('ref', '<=', ref)]),
      ]),
    )
    .orderBy('created_at_ms')
    .limit(BATCH_ROWS_MAX);
  const gone = await db.deleteFrom('qr_codes').where('ref', 'in', due).executeTakeFirst();
  return Number(gone.numDeletedRows);
}
