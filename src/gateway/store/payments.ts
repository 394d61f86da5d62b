import type { Kysely } from 'kysely';
import {
  type AttemptRow,
  type CallbackRow,
  type NextSeq,
  type NoticeRow,
  OPEN_PUSH,
  type PaymentRow,
  type PushRow,
  type Tables,
} from './schema.ts';

/** More are not told in one welcome; the rest follows at the next one. */
const NOTICES_MAX = 1000;

export type NewPayment = Omit<PaymentRow, 'seq'>;
/** A box that is told of a payment. */
export type Told = Pick<NoticeRow, 'terminal_code' | 'push_id'>;
/** What a box is told. */
export type Notice = NewPayment & Pick<NoticeRow, 'push_id'>;
export type NewCallback = Pick<CallbackRow, 'id' | 'url' | 'body'>;
export type NewAttempt = Omit<AttemptRow, 'seq'>;
/** What an attempt changes in its callback. */
export type AfterAttempt = Pick<CallbackRow, 'status' | 'warning' | 'tries' | 'next_at_ms'>;

/** Payments, the notices of them to boxes, and the callbacks to partners. */
export class PaymentStore {
  readonly #db: Kysely<Tables>;
  readonly #nextSeq: NextSeq;

  constructor(db: Kysely<Tables>, nextSeq: NextSeq) {
    this.#db = db;
    this.#nextSeq = nextSeq;
  }

  /**
   * Keeps a payment with all that follows from it: the order is paid, boxes and the partner are to be told. Its other
   * pushes that a box may still hold, now cancelled, which are to be withdrawn (PROTOCOL.md, clause CBK-7).
   */
  async add(
    payment: NewPayment,
    told: Told[],
    callback: NewCallback | undefined,
  ): Promise<Pick<PushRow, 'id' | 'terminal_code'>[]> {
    const atMs = payment.paid_at_ms;
    return this.#db.transaction().execute(async (trx) => {
      await trx
        .insertInto('payments')
        .values({ ...payment, seq: this.#nextSeq() })
        .execute();
      if (payment.order_ref !== null) {
        await trx
          .updateTable('orders')
          .set({ status: 'paid', paid_at_ms: atMs, updated_at_ms: atMs })
          .where('id', '=', payment.order_ref)
          .execute();
      }
      for (const box of told) {
        const state = { created_at_ms: atMs, reported_at_ms: null, recorded: null };
        await trx
          .insertInto('notices')
          .values({ payment_id: payment.id, ...box, ...state })
          .execute();
      }
      if (callback !== undefined) {
        const begun = { status: 'pending', warning: null, tries: 0, next_at_ms: atMs, created_at_ms: atMs } as const;
        const { id: payment_id, partner } = payment;
        await trx
          .insertInto('callbacks')
          .values({ ...callback, ...begun, payment_id, partner, seq: this.#nextSeq() })
          .execute();
      }
      if (payment.order_ref === null) return [];
      return trx
        .updateTable('pushes')
        .set({ status: 'cancelled' })
        .where('order_ref', '=', payment.order_ref)
        .where(
          'id',
          'not in',
          told.map((it) => it.push_id ?? ''),
        )
        .where('status', 'in', OPEN_PUSH)
        .returning(['id', 'terminal_code'])
        .execute();
    });
  }

  async newest(limit: number): Promise<PaymentRow[]> {
    return this.#db.selectFrom('payments').selectAll().orderBy('seq', 'desc').limit(limit).execute();
  }

  async noticesOf(paymentIds: string[]): Promise<NoticeRow[]> {
    if (paymentIds.length === 0) return [];
    return this.#db.selectFrom('notices').selectAll().where('payment_id', 'in', paymentIds).execute();
  }

  async callbacksOf(paymentIds: string[]): Promise<CallbackRow[]> {
    if (paymentIds.length === 0) return [];
    return this.#db.selectFrom('callbacks').selectAll().where('payment_id', 'in', paymentIds).execute();
  }

  /** Payments that a box has not yet reported as announced, oldest first (PROTOCOL.md, clause MSG-7). */
  async unreported(terminalCode: string): Promise<Notice[]> {
    return this.#db
      .selectFrom('payments')
      .innerJoin('notices', 'notices.payment_id', 'payments.id')
      .selectAll('payments')
      .select('notices.push_id')
      .where('notices.terminal_code', '=', terminalCode)
      .where('notices.reported_at_ms', 'is', null)
      .orderBy('payments.seq')
      .limit(NOTICES_MAX)
      .execute();
  }

  /** The box has announced a payment. `undefined` when it was not told of one, else whether this is the first report. */
  async report(
    paymentId: string,
    terminalCode: string,
    recorded: boolean,
    atMs: number,
  ): Promise<'first' | 'repeated' | undefined> {
    const notice = this.#db
      .selectFrom('notices')
      .select('reported_at_ms')
      .where('payment_id', '=', paymentId)
      .where('terminal_code', '=', terminalCode);
    const found = await notice.executeTakeFirst();
    if (found === undefined) return undefined;
    if (found.reported_at_ms !== null) return 'repeated';
    await this.#db
      .updateTable('notices')
      .set({ reported_at_ms: atMs, recorded: recorded ? 1 : 0 })
      .where('payment_id', '=', paymentId)
      .where('terminal_code', '=', terminalCode)
      .execute();
    return 'first';
  }

  async callback(id: string): Promise<CallbackRow | undefined> {
    return this.#db.selectFrom('callbacks').selectAll().where('id', '=', id).executeTakeFirst();
  }

  async newestCallbacks(limit: number): Promise<CallbackRow[]> {
    return this.#db.selectFrom('callbacks').selectAll().orderBy('seq', 'desc').limit(limit).execute();
  }

  /** Soonest due first. */
  async nextPending(limit: number): Promise<Pick<CallbackRow, 'id' | 'next_at_ms'>[]> {
    const rows = this.#db.selectFrom('callbacks').select(['id', 'next_at_ms']).where('status', '=', 'pending');
    return rows.orderBy('next_at_ms').orderBy('seq').limit(limit).execute();
  }

  async attemptsOf(callbackIds: string[]): Promise<AttemptRow[]> {
    if (callbackIds.length === 0) return [];
    const rows = this.#db.selectFrom('callback_attempts').selectAll().where('callback_id', 'in', callbackIds);
    return rows.orderBy('seq').execute();
  }

  /** Keeps an attempt together with what it changes (PROTOCOL.md, clause SYN-5). */
  async addAttempt(attempt: NewAttempt, after: AfterAttempt): Promise<void> {
    await this.#db.transaction().execute(async (trx) => {
      await trx
        .insertInto('callback_attempts')
        .values({ ...attempt, seq: this.#nextSeq() })
        .execute();
      await trx.updateTable('callbacks').set(after).where('id', '=', attempt.callback_id).execute();
    });
  }
}
