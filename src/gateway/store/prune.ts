import { type Kysely, sql } from 'kysely';
import { recordPruned } from './integrity/ledger.ts';
import { RETENTION_MS } from './retention.ts';
import { CLOCK_ERROR_MS_MAX, type Tables } from './schema/tables.ts';
import { transact } from './transact.ts';

/** At most this many finished rows of each kind are kept. */
const KEPT_MAX = 100_000;
/** More credits than payments are kept, because a repeated credit must be recognised. */
const CREDITS_PER_PAYMENT = 10;
/** The number of rows in one transaction. Other queries wait for it, so it must be short. */
const BATCH_ROWS_MAX = 20;

export interface RetentionLimits {
  keptMs: number;
  keptMax: number;
}

/** The rows that one transaction deleted. Pushes go with their order, notices and callbacks with their payment. */
export interface Pruned {
  kind: PrunedTable | 'qrCodes';
  deleted: number;
  /** The number of deleted payments whose callback had failed. */
  undelivered?: number;
}

type PrunedTable = 'pushes' | 'orders' | 'payments' | 'credits';

/** A row is due if its `seq` is at most `uptoSeq`, or if it last changed before `beforeMs`. */
interface Due {
  uptoSeq: number;
  beforeMs: number;
}

/** The last row that was read, and the newest creation time of the rows up to it. */
interface Cursor {
  seq: number;
  madeMs: number;
}

interface Batch extends Omit<Pruned, 'kind'> {
  next: Cursor;
}

const START: Cursor = { seq: 0, madeMs: Number.NEGATIVE_INFINITY };

/**
 * Deletes finished rows that are older than 30 days or beyond the newest 100,000: oldest first, one batch per
 * iteration. It always keeps an order or push that a box may still show, and a payment that a box has not reported or
 * whose callback is pending. A payment whose callback failed is deleted by number only, not by age. Pushes are deleted
 * first. Otherwise an order that is pushed again and again would be deleted with all its pushes at once, or never.
 */
export async function* prune(
  db: Kysely<Tables>,
  atMs: number,
  { keptMs, keptMax }: RetentionLimits = { keptMs: RETENTION_MS, keptMax: KEPT_MAX },
): AsyncGenerator<Pruned, void> {
  const beforeMs = atMs - keptMs;
  for (const kind of ['pushes', 'orders', 'payments', 'credits'] as const) {
    const rowsMax = kind === 'credits' ? keptMax * CREDITS_PER_PAYMENT : keptMax;
    const due = { beforeMs, uptoSeq: await newestBeyond(db, kind, rowsMax) };
    for (let cursor: Cursor | undefined = START; cursor !== undefined; ) {
      const from: Cursor = cursor;
      const batch: Batch | undefined = await transact(db, (trx) => pruneBatch(trx, kind, { from, due, atMs }));
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

/** Returns the `seq` of the newest row beyond `keptMax` rows. 0 if there is none. */
async function newestBeyond(db: Kysely<Tables>, table: PrunedTable, keptMax: number): Promise<number> {
  const rows = db.selectFrom(table).select('seq').orderBy('seq', 'desc').limit(1).offset(keptMax);
  return (await rows.executeTakeFirst())?.seq ?? 0;
}

/**
 * Deletes the due and finished rows of the next batch. Returns `undefined` when no row is due. A row counts as created
 * no earlier than the rows before it, because somebody may have set the calendar clock back.
 */
async function pruneBatch(
  db: Kysely<Tables>,
  kind: PrunedTable,
  { from, due, atMs }: { from: Cursor; due: Due; atMs: number },
): Promise<Batch | undefined> {
  const [made, changed] = (
    {
      pushes: ['created_at_ms', 'created_at_ms'],
      orders: ['created_at_ms', 'updated_at_ms'],
      payments: ['paid_at_ms', 'paid_at_ms'],
      credits: ['received_at_ms', 'received_at_ms'],
    } as const
  )[kind];
  const rows = await db
    .selectFrom(kind)
    .select(['id', 'seq', sql.ref<number>(made).as('madeMs'), sql.ref<number>(changed).as('changedMs')])
    .where('seq', '>', from.seq)
    .orderBy('seq')
    .limit(BATCH_ROWS_MAX)
    .execute();
  let next = from;
  const dueRows = rows.filter(({ seq, madeMs, changedMs }) => {
    next = { seq, madeMs: Math.max(next.madeMs, madeMs) };
    return seq <= due.uptoSeq || Math.max(changedMs, next.madeMs) < due.beforeMs;
  });
  if (dueRows.length === 0) return undefined;
  const ids = dueRows.map(({ id }) => id);
  if (kind === 'pushes') return { deleted: await prunePushes(db, ids, due, atMs), next };
  if (kind === 'orders') return { deleted: await pruneOrders(db, ids, atMs), next };
  if (kind === 'credits') return { deleted: await pruneCredits(db, ids), next };
  const dueByAge = dueRows.filter(({ seq }) => seq > due.uptoSeq).map(({ id }) => id);
  return { ...(await prunePayments(db, ids, new Set(dueByAge))), next };
}

/** Deletes finished pushes, but not the newest and last shown ones of an order, nor those that an absent box has not ended. */
async function prunePushes(db: Kysely<Tables>, ids: string[], { beforeMs }: Due, atMs: number): Promise<number> {
  const kept = await db
    .selectFrom('pushes')
    .innerJoin('orders', 'orders.id', 'pushes.order_ref')
    .select('pushes.id as id')
    .where('pushes.id', 'in', ids)
    .where((it) =>
      it.or([
        it('pushes.expires_at_ms', '>', atMs - CLOCK_ERROR_MS_MAX),
        it.and([it('pushes.ended_at_ms', 'is', null), it('pushes.expires_at_ms', '>=', beforeMs)]),
        it('orders.last_push_id', '=', it.ref('pushes.id')),
        it('orders.shown_push_id', '=', it.ref('pushes.id')),
      ]),
    )
    .execute();
  const finished = without(ids, kept);
  if (finished.length > 0) await db.deleteFrom('pushes').where('id', 'in', finished).execute();
  return finished.length;
}

/** Deletes finished orders. Keeps an order that a box may still show. */
async function pruneOrders(db: Kysely<Tables>, ids: string[], atMs: number): Promise<number> {
  const onBox = await db
    .selectFrom('pushes')
    .select('order_ref as id')
    .where('order_ref', 'in', ids)
    .where('expires_at_ms', '>', atMs - CLOCK_ERROR_MS_MAX)
    .where('ended_at_ms', 'is', null)
    .execute();
  const finished = without(ids, onBox);
  if (finished.length > 0) {
    await db.deleteFrom('pushes').where('order_ref', 'in', finished).execute();
    await db.deleteFrom('order_codes').where('order_ref', 'in', finished).execute();
    await db.deleteFrom('payment_requests').where('order_ref', 'in', finished).execute();
    await db.deleteFrom('sales').where('order_ref', 'in', finished).execute();
    await db.deleteFrom('orders').where('id', 'in', finished).execute();
  }
  return finished.length;
}

/** Deletes credits. Keeps a credit whose payment is still in the store. */
async function pruneCredits(db: Kysely<Tables>, ids: string[]): Promise<number> {
  const finished = without(ids, await db.selectFrom('payments').select('id').where('id', 'in', ids).execute());
  if (finished.length > 0) await db.deleteFrom('credits').where('id', 'in', finished).execute();
  return finished.length;
}

/**
 * Deletes finished payments. Keeps unreported payments, those with a pending callback, and those that are due only by
 * age and whose callback failed.
 */
async function prunePayments(
  db: Kysely<Tables>,
  ids: string[],
  dueByAge: ReadonlySet<string>,
): Promise<{ deleted: number; undelivered: number }> {
  const unreported = db.selectFrom('notices').select('payment_id as id').where('reported_at_ms', 'is', null);
  const callbacks = db.selectFrom('callbacks').select('payment_id as id').where('payment_id', 'in', ids);
  const failed = await callbacks.where('status', '=', 'failed').execute();
  const finished = without(ids, [
    ...failed.filter(({ id }) => dueByAge.has(id)),
    ...(await unreported.where('payment_id', 'in', ids).execute()),
    ...(await callbacks.where('status', '=', 'pending').execute()),
  ]);
  if (finished.length === 0) return { deleted: 0, undelivered: 0 };
  const own = db.selectFrom('callbacks').select('id').where('payment_id', 'in', finished);
  await db.deleteFrom('callback_attempts').where('callback_id', 'in', own).execute();
  await db.deleteFrom('callbacks').where('payment_id', 'in', finished).execute();
  await db.deleteFrom('notices').where('payment_id', 'in', finished).execute();
  await recordPruned(db, finished);
  await db.deleteFrom('payments').where('id', 'in', finished).execute();
  return { deleted: finished.length, undelivered: finished.length - without(finished, failed).length };
}

function without(ids: string[], kept: { id: string }[]): string[] {
  const keptIds = new Set(kept.map((it) => it.id));
  return ids.filter((id) => !keptIds.has(id));
}

/** Deletes generated QRs. They are only pictures, so only age and number count. */
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
  const deleted = await db.deleteFrom('qr_codes').where('ref', 'in', due).executeTakeFirst();
  return Number(deleted.numDeletedRows);
}
