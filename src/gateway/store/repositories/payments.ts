import type { Kysely } from 'kysely';
import type { Logger } from '../../../lib/log.ts';
import { intact, onlyIntact } from '../integrity/checksums.ts';
import { appendToLedger, type LedgerHead } from '../integrity/ledger.ts';
import {
  type AttemptRow,
  type CallbackRow,
  type CallbackStatus,
  type NoticeRow,
  OPEN_PUSH,
  type OrderRow,
  type PaymentRow,
  type PushRow,
  type Tables,
} from '../schema/tables.ts';
import { type Deliveries, enqueue, type NewNotice, type NewPayment } from './deliveries.ts';
import { type Backlog, backlogIn, type CallbackChoice, neverTriedIn, type TriedAgain, tryAgainIn } from './owed.ts';
import { findOrderFor, type PaymentDetails } from './paid-by.ts';
import { newestAttempts, nextAttemptSeq, seqOf } from './seq.ts';

/** More are not told at a time; the rest follows as these are answered. */
const NOTICES_MAX = 100;

/** What a box is told; `repeated` when it may have been before. */
export type Notice = NewPayment & Pick<NoticeRow, 'push_id'> & { repeated: boolean };
/** A payment with all that follows from it. */
export interface PaymentEffects extends Deliveries {
  payment: NewPayment;
}
/** What was kept of a payment, and the pushes that are to be withdrawn because of it. */
export interface StoredPayment extends PaymentEffects {
  withdrawn: Pick<PushRow, 'id' | 'terminal_code'>[];
}
export type NewAttempt = Omit<AttemptRow, 'seq'>;
/** What an attempt changes in its callback. */
export type AfterAttempt = Pick<CallbackRow, 'url'> &
  Partial<Pick<CallbackRow, 'status' | 'warning' | 'tries' | 'next_at_ms'>>;

/** Payments, the notices of them to boxes, and the callbacks to partners. */
export class PaymentStore {
  readonly #db: Kysely<Tables>;
  readonly #log: Logger;
  readonly #onKept: (end: LedgerHead) => void;

  /** `onKept` is called with each payment that is kept, before anybody is told of it. */
  constructor(db: Kysely<Tables>, log: Logger, onKept: (end: LedgerHead) => void) {
    this.#db = db;
    this.#log = log;
    this.#onKept = onKept;
  }

  /**
   * Finds the order that the money pays, or takes the one that is named, and keeps the payment with all that follows
   * from it, which `consequencesOf` says without side effects: the order is paid, boxes and the partner are to be told.
   * Nothing comes between, so that two payments at once pay two orders (PROTOCOL.md, clause CBK-6). The other pushes of
   * the order that a box may still hold are cancelled, and are to be withdrawn (clause CBK-7).
   */
  async add(
    pays: PaymentDetails | { orderRef: string },
    atMs: number,
    consequencesOf: (order: OrderRow | undefined) => PaymentEffects,
  ): Promise<StoredPayment> {
    const { end, ...kept } = await this.#db.transaction().execute(async (trx) => {
      const order =
        'orderRef' in pays
          ? intact(
              'orders',
              await trx.selectFrom('orders').selectAll().where('id', '=', pays.orderRef).executeTakeFirst(),
            )
          : await findOrderFor(trx, pays, atMs);
      const consequences = consequencesOf(order);
      const { payment, notices: told } = consequences;
      const end = await appendToLedger(trx, payment);
      await trx.insertInto('payments').values(end).execute();
      await enqueue(trx, payment, consequences, atMs);
      const withdrawn = order === undefined ? [] : await payOrder(trx, order.id, told, atMs);
      return { ...consequences, withdrawn, end };
    });
    this.#onKept(end);
    return kept;
  }

  /** Newest first; with `before`, an id, only those that are older. */
  async newest(limit: number, before?: string): Promise<PaymentRow[]> {
    const rows = this.#db.selectFrom('payments').selectAll().orderBy('seq', 'desc').limit(limit);
    const listed = before === undefined ? rows : rows.where('seq', '<', seqOf('payments', before));
    return onlyIntact('payments', await listed.execute(), this.#log);
  }

  async noticesOf(paymentIds: string[]): Promise<NoticeRow[]> {
    if (paymentIds.length === 0) return [];
    const rows = this.#db.selectFrom('notices').selectAll().where('payment_id', 'in', paymentIds);
    return onlyIntact('notices', await rows.execute(), this.#log);
  }

  async callbacksOf(paymentIds: string[]): Promise<CallbackRow[]> {
    if (paymentIds.length === 0) return [];
    const rows = this.#db.selectFrom('callbacks').selectAll().where('payment_id', 'in', paymentIds);
    return onlyIntact('callbacks', await rows.execute(), this.#log);
  }

  /**
   * Payments that a box has not yet reported as announced, oldest first, taken down as told; `more` when others wait
   * (clauses MSG-7 and AGT-11).
   */
  async takeUnreported(terminalCode: string, atMs: number): Promise<{ notices: Notice[]; more: boolean }> {
    const unreported = await this.#db
      .selectFrom('payments')
      .innerJoin('notices', 'notices.payment_id', 'payments.id')
      .selectAll('payments')
      .where('notices.terminal_code', '=', terminalCode)
      .where('notices.reported_at_ms', 'is', null)
      .orderBy('payments.seq')
      .limit(NOTICES_MAX + 1)
      .execute();
    const payments = onlyIntact('payments', unreported.slice(0, NOTICES_MAX), this.#log);
    const state = new Map<string, NoticeRow>();
    for (const notice of await this.noticesOf(payments.map(({ id }) => id))) {
      if (notice.terminal_code === terminalCode) state.set(notice.payment_id, notice);
    }
    const notices = payments.flatMap((payment) => {
      const notice = state.get(payment.id);
      return notice === undefined
        ? []
        : [{ ...payment, push_id: notice.push_id, repeated: notice.told_at_ms !== null }];
    });
    const first = notices.filter(({ repeated }) => !repeated).map(({ id }) => id);
    if (first.length > 0) {
      await this.#db
        .updateTable('notices')
        .set({ told_at_ms: atMs })
        .where('terminal_code', '=', terminalCode)
        .where('payment_id', 'in', first)
        .execute();
    }
    return { notices, more: unreported.length > NOTICES_MAX };
  }

  /** The box has announced a payment. `undefined` when it was not told of one, else whether this is the first report. */
  async report(
    paymentId: string,
    terminalCode: string,
    recorded: boolean,
    atMs: number,
  ): Promise<'first' | 'repeated' | undefined> {
    return this.#db.transaction().execute(async (trx) => {
      const first = await trx
        .updateTable('notices')
        .set({ reported_at_ms: atMs, recorded: recorded ? 1 : 0 })
        .where('payment_id', '=', paymentId)
        .where('terminal_code', '=', terminalCode)
        .where('reported_at_ms', 'is', null)
        .executeTakeFirst();
      if (first.numUpdatedRows > 0n) return 'first';
      const notice = trx
        .selectFrom('notices')
        .select('payment_id')
        .where('payment_id', '=', paymentId)
        .where('terminal_code', '=', terminalCode);
      return (await notice.executeTakeFirst()) === undefined ? undefined : 'repeated';
    });
  }

  async callback(id: string): Promise<CallbackRow | undefined> {
    const row = this.#db.selectFrom('callbacks').selectAll().where('id', '=', id);
    return intact('callbacks', await row.executeTakeFirst());
  }

  /** Newest first; with `before`, an id, only those that are older; with a status, only those that have it. */
  async newestCallbacks(limit: number, before?: string, status?: CallbackStatus): Promise<CallbackRow[]> {
    let rows = this.#db.selectFrom('callbacks').selectAll().orderBy('seq', 'desc').limit(limit);
    if (before !== undefined) rows = rows.where('seq', '<', seqOf('callbacks', before));
    if (status !== undefined) rows = rows.where('status', '=', status);
    return onlyIntact('callbacks', await rows.execute(), this.#log);
  }

  /** How much waits for each partner, and how much has failed. */
  backlog(): Promise<Backlog> {
    return backlogIn(this.#db);
  }

  /**
   * Has the oldest of some callbacks tried again from `atMs` on, as after their first attempt; at most `limit`, after
   * one with a `seq`. The partners of those, and the `seq` after which there may be more.
   */
  tryAgain(choice: CallbackChoice, after: number, limit: number, atMs: number): Promise<TriedAgain> {
    return tryAgainIn(this.#db, this.#log, { choice, after, limit, atMs });
  }

  /** Partners to whom something is still to be told. */
  async pendingPartners(): Promise<string[]> {
    const rows = this.#db.selectFrom('callbacks').select('partner').distinct().where('status', '=', 'pending');
    return (await rows.execute()).map((it) => it.partner);
  }

  /** What a partner was not told even once, oldest first. */
  neverTried(partner: string, limit: number): Promise<Pick<CallbackRow, 'id'>[]> {
    return neverTriedIn(this.#db, partner, limit);
  }

  /** What is to be told to a partner, soonest due first. */
  async nextPending(partner: string, limit: number): Promise<Pick<CallbackRow, 'id' | 'tries' | 'next_at_ms'>[]> {
    return this.#db
      .selectFrom('callbacks')
      .select(['id', 'tries', 'next_at_ms'])
      .where('status', '=', 'pending')
      .where('partner', '=', partner)
      .orderBy('next_at_ms')
      .orderBy('seq')
      .limit(limit)
      .execute();
  }

  /** The newest attempts of each, oldest first; `seq` counts those of a callback from 1. */
  async attemptsOf(callbackIds: string[], eachMax: number): Promise<AttemptRow[]> {
    if (callbackIds.length === 0) return [];
    const rows = this.#db.selectFrom('callback_attempts').selectAll().where('callback_id', 'in', callbackIds);
    return rows.where('seq', '>', newestAttempts(eachMax)).orderBy('seq').execute();
  }

  /** Keeps an attempt together with what it changes (PROTOCOL.md, clause SYN-5), unless its callback was deleted. */
  async addAttempt(attempt: NewAttempt, after: AfterAttempt): Promise<void> {
    await this.#db.transaction().execute(async (trx) => {
      const changed = await trx
        .updateTable('callbacks')
        .set(after)
        .where('id', '=', attempt.callback_id)
        .executeTakeFirst();
      if (changed.numUpdatedRows === 0n) return;
      await trx
        .insertInto('callback_attempts')
        .values({ ...attempt, seq: nextAttemptSeq(attempt.callback_id) })
        .execute();
    });
  }
}

/** Marks an order as paid. Its pushes to boxes that are told of no payment for them, which are cancelled. */
async function payOrder(
  db: Kysely<Tables>,
  orderRef: string,
  told: NewNotice[],
  atMs: number,
): Promise<StoredPayment['withdrawn']> {
  await db
    .updateTable('orders')
    .set({ status: 'paid', paid_at_ms: atMs, updated_at_ms: atMs })
    .where('id', '=', orderRef)
    .execute();
  const toldOf = told.flatMap((it) => it.push_id ?? []);
  const open = db.updateTable('pushes').where('order_ref', '=', orderRef).where('status', 'in', OPEN_PUSH);
  if (toldOf.length === 0) return open.set({ status: 'cancelled' }).returning(['id', 'terminal_code']).execute();
  // On the box that is told, the payment takes the place of its QR.
  await open.set({ status: 'ended', ended_at_ms: atMs }).where('id', 'in', toldOf).execute();
  return open.set({ status: 'cancelled' }).returning(['id', 'terminal_code']).execute();
}
