import type { Kysely, Selectable } from 'kysely';
import type { Logger } from '../../../lib/log.ts';
import type { OrderStatus } from '../../../protocol/statuses.ts';
import { onlyIntact } from '../integrity/checksums.ts';
import { type NewPayment, type NoticeRow, OPEN_PUSH, type PaymentRow, type Tables } from '../schema/tables.ts';
import { transact } from '../transact.ts';
import { CREDIT_FRESH_MS, type CreditSides, ON_TIME, sidesOf } from './credit-sides.ts';
import type { WithdrawnPush } from './order-changes.ts';
import { nextSeq, seqOf } from './seq.ts';

/** At most this many notices are sent to a box at once. The others follow when the box has reported these. */
const NOTICES_MAX = 100;

/** A box that must announce a payment. `told_at_ms` is null until the notice is sent. */
export interface NewNotice {
  terminal_code: string;
  push_id: string | null;
  told_at_ms: number | null;
}
/** The callback of a payment before its first attempt. */
export interface NewCallback {
  id: string;
  url: string;
  body: string;
}
/** The notices and the callback of a payment. */
export interface Deliveries {
  notices: NewNotice[];
  callback: NewCallback | undefined;
}
/** A payment and the deliveries that follow from it. */
export interface PaymentEffects extends Deliveries {
  payment: NewPayment;
}
/** A stored payment, and the pushes that it withdraws. */
export interface StoredPayment extends PaymentEffects {
  withdrawn: WithdrawnPush[];
}
/** A payment in a notice to a box. `repeated` is true if the notice may have been sent before. */
export type Notice = NewPayment & CreditSides & { push_id: string | null; repeated: boolean };
/** Returns whether a payment is still news for the box that its notice waits for. Times are calendar times. */
export type IsNews = (payment: { paid_at_ms: number; stored_at_ms: number }) => boolean;

/** Stores payments and their notices to boxes. */
export class PaymentStore {
  readonly #db: Kysely<Tables>;
  readonly #log: Logger;

  constructor(db: Kysely<Tables>, log: Logger) {
    this.#db = db;
    this.#log = log;
  }

  /** Returns payments, newest first. With `before`, an id, only older ones. */
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

  /**
   * Returns the oldest payments that a box has not reported, and records them as sent. `more` is true if others wait
   * (clauses MSG-7 and AGT-11). A payment that is no longer news is late, and stays late. A payment that a source
   * reported is also late if it has become old since (clause CRE-5).
   */
  async takeUnreported(
    terminalCode: string,
    atMs: number,
    isNews: IsNews = () => true,
  ): Promise<{ notices: Notice[]; more: boolean }> {
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
    const rows = await this.noticesOf(payments.map(({ id }) => id));
    const own = new Map(rows.filter((it) => it.terminal_code === terminalCode).map((it) => [it.payment_id, it]));
    const sides = await sidesOf(this.#db, payments);
    const notices = payments.flatMap((payment) => {
      const row = own.get(payment.id);
      if (row === undefined) return [];
      const { push_id, told_at_ms, created_at_ms: stored_at_ms } = row;
      const told = sides.get(payment.id);
      const isOld = told !== undefined && atMs - payment.paid_at_ms > CREDIT_FRESH_MS;
      const { late, due } = told ?? ON_TIME;
      const isLate = row.late === 1 || late || isOld || !isNews({ ...payment, stored_at_ms });
      return [{ ...payment, push_id, repeated: told_at_ms !== null, late: isLate, due }];
    });
    const first = notices.filter(({ repeated }) => !repeated);
    await this.#mark(terminalCode, first, { told_at_ms: atMs });
    const becameLate = notices.filter(({ id, late }) => late && own.get(id)?.late === 0);
    await this.#mark(terminalCode, becameLate, { late: 1 });
    return { notices, more: unreported.length > NOTICES_MAX };
  }

  async #mark(
    terminalCode: string,
    notices: readonly Notice[],
    mark: { told_at_ms?: number; late?: number },
  ): Promise<void> {
    if (notices.length === 0) return;
    const ids = notices.map(({ id }) => id);
    const rows = this.#db.updateTable('notices').set(mark).where('terminal_code', '=', terminalCode);
    await rows.where('payment_id', 'in', ids).execute();
  }

  /** Records that the box has announced a payment. Returns `undefined` if the box has no notice of it. */
  async report(
    paymentId: string,
    terminalCode: string,
    recorded: boolean,
    atMs: number,
  ): Promise<'first' | 'repeated' | undefined> {
    return transact(this.#db, async (trx) => {
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

  /** Records that a notice was sent that an earlier report called not recorded. */
  async markSent(paymentId: string, terminalCode: string): Promise<void> {
    await this.#db
      .updateTable('notices')
      .set({ recorded: 1 })
      .where('payment_id', '=', paymentId)
      .where('terminal_code', '=', terminalCode)
      .where('reported_at_ms', 'is not', null)
      .execute();
  }

  /** Cancels a report. It was stored before the notice was sent, and no box has received the notice. */
  async unreport(paymentId: string, terminalCode: string): Promise<void> {
    await this.#db
      .updateTable('notices')
      .set({ told_at_ms: null, reported_at_ms: null, recorded: null })
      .where('payment_id', '=', paymentId)
      .where('terminal_code', '=', terminalCode)
      .execute();
  }

  /** Ends a notice without sending it, because its payment is no longer news. */
  async dropNotice(paymentId: string, terminalCode: string, atMs: number): Promise<void> {
    await unreportedOf(this.#db, terminalCode).set(dropped(atMs)).where('payment_id', '=', paymentId).execute();
  }

  /**
   * Ends the waiting notices of a box about money to other accounts than that of its row (PROTOCOL.md, clause REG-5). A
   * hello may be handled so slowly that the box has got another account since it was read.
   */
  async dropForeignNotices(terminalCode: string, atMs: number): Promise<void> {
    const { numUpdatedRows } = await unreportedOf(this.#db, terminalCode)
      .set(dropped(atMs))
      .where(({ exists, selectFrom }) =>
        exists(
          selectFrom('payments')
            .select('payments.id')
            .whereRef('payments.id', '=', 'notices.payment_id')
            .where('payments.bank_account', 'is distinct from', (it) =>
              it.selectFrom('boxes').select('account').where('boxes.terminal_code', '=', terminalCode),
            ),
        ),
      )
      .executeTakeFirstOrThrow();
    if (numUpdatedRows === 0n) return;
    const reason = 'they are about money to an account that is no longer linked to this box';
    this.#log.warn('notices-dropped', { box: terminalCode, count: Number(numUpdatedRows), reason });
  }
}

function unreportedOf(db: Kysely<Tables>, terminalCode: string) {
  return db.updateTable('notices').where('terminal_code', '=', terminalCode).where('reported_at_ms', 'is', null);
}

function dropped(atMs: number) {
  return { told_at_ms: null, reported_at_ms: atMs, recorded: 0 };
}

/** Stores the notices and the callback of a payment, in the caller's transaction. */
export async function enqueueDeliveries(
  db: Kysely<Tables>,
  { id: payment_id, partner }: NewPayment,
  { notices, callback }: Deliveries,
  atMs: number,
): Promise<void> {
  for (const notice of notices) {
    const begun = { created_at_ms: atMs, late: 0, reported_at_ms: null, recorded: null };
    await db
      .insertInto('notices')
      .values({ payment_id, ...notice, ...begun })
      .execute();
  }
  if (callback === undefined) return;
  const begun = { status: 'pending', warning: null, tries: 0, next_at_ms: atMs, created_at_ms: atMs } as const;
  await db
    .insertInto('callbacks')
    .values({ ...callback, ...begun, payment_id, partner, seq: nextSeq(db, 'callbacks') })
    .execute();
}

export function orderWith(db: Kysely<Tables>, id: string): Promise<Selectable<Tables['orders']> | undefined> {
  return db.selectFrom('orders').selectAll().where('id', '=', id).executeTakeFirst();
}

/**
 * Ends an order by a payment. On a box with a notice its push ends, because the payment replaces the QR. The other open
 * pushes are cancelled.
 */
export async function endOrder(
  db: Kysely<Tables>,
  orderRef: string,
  end: { status: OrderStatus; updated_at_ms: number; paid_at_ms?: number },
  notices: NewNotice[],
): Promise<StoredPayment['withdrawn']> {
  const atMs = end.updated_at_ms;
  await db.updateTable('orders').set(end).where('id', '=', orderRef).execute();
  const announced = notices.flatMap((it) => it.push_id ?? []);
  const open = db.updateTable('pushes').where('order_ref', '=', orderRef).where('status', 'in', OPEN_PUSH);
  if (announced.length > 0) {
    await open.set({ status: 'ended', ended_at_ms: atMs }).where('id', 'in', announced).execute();
  }
  return open.set({ status: 'cancelled' }).returning(['id', 'terminal_code']).execute();
}
