import type { Kysely } from 'kysely';
import type { Tables } from './schema.ts';

/** What is over is kept for so long … */
const KEPT_MS = 30 * 86_400_000;
/** … and of each kind the newest so many. */
const KEPT_MAX = 100_000;
/** Rows looked at in one transaction: whatever else is asked of the store waits for no more than that. */
const BATCH_ROWS_MAX = 100;

/** Of each kind so many are gone; an order with its pushes, a payment with its notices and callbacks. */
export type Pruned = Record<'orders' | 'payments' | 'qrCodes', number>;

export interface Limits {
  keptMs: number;
  keptMax: number;
}

/** Rows of one transaction: how many of them are gone, and after which `seq` to go on, if there can be more. */
interface Batch {
  deleted: number;
  after: number | undefined;
}

/** What is due to go: the rows up to a `seq`, and those that were last changed before a time. */
interface Due {
  uptoSeq: number;
  beforeMs: number;
}

/**
 * Deletes what is older than 30 days or beyond the newest 100,000, oldest first and a batch at a time, until `signal`
 * aborts. Never an order that a box may still show, nor a payment that a box has not reported or
 * that a partner is still to be told: those are kept whatever their age and number.
 */
export async function prune(
  db: Kysely<Tables>,
  atMs: number,
  signal: AbortSignal,
  { keptMs, keptMax }: Limits = { keptMs: KEPT_MS, keptMax: KEPT_MAX },
): Promise<Pruned> {
  const beforeMs = atMs - keptMs;
  const walk = async (
    table: 'orders' | 'payments',
    batchOf: (db: Kysely<Tables>, after: number, due: Due) => Promise<Batch>,
  ) => {
    const due = { beforeMs, uptoSeq: await newestBeyond(db, table, keptMax) };
    let deleted = 0;
    for (let after: number | undefined = 0; after !== undefined && !signal.aborted; ) {
      const from: number = after;
      const batch: Batch = await db.transaction().execute((trx) => batchOf(trx, from, due));
      deleted += batch.deleted;
      after = batch.after;
    }
    return deleted;
  };
  return {
    orders: await walk('orders', (trx, after, due) => pruneOrders(trx, after, due, atMs)),
    payments: await walk('payments', prunePayments),
    qrCodes: await pruneQrCodes(db, beforeMs, keptMax, signal),
  };
}

/** The highest `seq` that is beyond the newest `keptMax`; 0 when there are not so many. */
async function newestBeyond(db: Kysely<Tables>, table: 'orders' | 'payments', keptMax: number): Promise<number> {
  const rows = db.selectFrom(table).select('seq').orderBy('seq', 'desc').limit(1).offset(keptMax);
  return (await rows.executeTakeFirst())?.seq ?? 0;
}

async function pruneOrders(db: Kysely<Tables>, after: number, due: Due, atMs: number): Promise<Batch> {
  const rows = await db
    .selectFrom('orders')
    .select(['id', 'seq', 'updated_at_ms as atMs'])
    .where('seq', '>', after)
    .orderBy('seq')
    .limit(BATCH_ROWS_MAX)
    .execute();
  return deleteDue(rows, due, async (ids) => {
    const onBox = await db
      .selectFrom('pushes')
      .select('order_ref as id')
      .where('order_ref', 'in', ids)
      .where('expires_at_ms', '>', atMs)
      .where('ended_at_ms', 'is', null)
      .execute();
    const over = without(ids, onBox);
    if (over.length === 0) return 0;
    await db.deleteFrom('pushes').where('order_ref', 'in', over).execute();
    await db.deleteFrom('orders').where('id', 'in', over).execute();
    return over.length;
  });
}

async function prunePayments(db: Kysely<Tables>, after: number, due: Due): Promise<Batch> {
  const rows = await db
    .selectFrom('payments')
    .select(['id', 'seq', 'paid_at_ms as atMs'])
    .where('seq', '>', after)
    .orderBy('seq')
    .limit(BATCH_ROWS_MAX)
    .execute();
  return deleteDue(rows, due, async (ids) => {
    const unreported = db.selectFrom('notices').select('payment_id as id').where('reported_at_ms', 'is', null);
    const untold = db.selectFrom('callbacks').select('payment_id as id').where('status', '=', 'pending');
    const over = without(ids, [
      ...(await unreported.where('payment_id', 'in', ids).execute()),
      ...(await untold.where('payment_id', 'in', ids).execute()),
    ]);
    if (over.length === 0) return 0;
    const callbacks = db.selectFrom('callbacks').select('id').where('payment_id', 'in', over);
    await db.deleteFrom('callback_attempts').where('callback_id', 'in', callbacks).execute();
    await db.deleteFrom('callbacks').where('payment_id', 'in', over).execute();
    await db.deleteFrom('notices').where('payment_id', 'in', over).execute();
    await db.deleteFrom('payments').where('id', 'in', over).execute();
    return over.length;
  });
}

/** Has those of the rows deleted that are due; the walk ends with rows of which none is. */
async function deleteDue(
  rows: { id: string; seq: number; atMs: number }[],
  { uptoSeq, beforeMs }: Due,
  deleteOver: (ids: string[]) => Promise<number>,
): Promise<Batch> {
  const ids = rows.filter(({ seq, atMs }) => seq <= uptoSeq || atMs < beforeMs).map((it) => it.id);
  if (ids.length === 0) return { deleted: 0, after: undefined };
  return { deleted: await deleteOver(ids), after: rows.at(-1)?.seq };
}

function without(ids: string[], kept: { id: string }[]): string[] {
  const keptIds = new Set(kept.map((it) => it.id));
  return ids.filter((id) => !keptIds.has(id));
}

/** A QR that was made is only a picture to look at, which nothing waits for. */
async function pruneQrCodes(
  db: Kysely<Tables>,
  beforeMs: number,
  keptMax: number,
  signal: AbortSignal,
): Promise<number> {
  const newest = db.selectFrom('qr_codes').select(['created_at_ms', 'ref']);
  const beyond = await newest
    .orderBy('created_at_ms', 'desc')
    .orderBy('ref', 'desc')
    .limit(1)
    .offset(keptMax)
    .executeTakeFirst();
  const due = db
    .selectFrom('qr_codes')
    .select('ref')
    .where((it) =>
      it.or([
        it('created_at_ms', '<', Math.max(beforeMs, beyond?.created_at_ms ?? beforeMs)),
        it.and([it('created_at_ms', '=', beyond?.created_at_ms ?? -1), it('ref', '<=', beyond?.ref ?? '')]),
      ]),
    )
    .orderBy('created_at_ms')
    .limit(BATCH_ROWS_MAX);
  let deleted = 0;
  for (let last = BATCH_ROWS_MAX; last === BATCH_ROWS_MAX && !signal.aborted; deleted += last) {
    const gone = await db.deleteFrom('qr_codes').where('ref', 'in', due).executeTakeFirst();
    last = Number(gone.numDeletedRows);
  }
  return deleted;
}
