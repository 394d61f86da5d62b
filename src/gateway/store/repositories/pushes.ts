import type { Kysely } from 'kysely';
import type { NewOrder, NewPush, PushStatus, Tables } from '../schema/tables.ts';
import type { WithdrawnPush } from './order-changes.ts';
import { type Confirmation, isConfirmation, UNSURE_CODES } from './orders.ts';

/** The state of a push. */
export interface PushState {
  terminalCode: string;
  status: PushStatus;
  /** The reason of a failed push. */
  code: string | null;
  /** True if the box has ever confirmed that it has the push, or that it shows it. */
  wasAccepted: boolean;
  wasShown: boolean;
}

/** Reads what another gateway may have stored or changed for boxes. */
export class PushReader {
  readonly #db: Kysely<Tables>;
  readonly #early: Kysely<Tables>;

  /** `early`: for reads whose caller reads the rows again before it sends anything to a box. */
  constructor(db: Kysely<Tables>, early = db) {
    this.#db = db;
    this.#early = early;
  }

  /** Returns the state of a push, or undefined if there is none. */
  async state(pushId: string): Promise<PushState | undefined> {
    const push = await this.#db
      .selectFrom('pushes')
      .innerJoin('orders', 'orders.id', 'pushes.order_ref')
      .select([
        'pushes.terminal_code',
        'pushes.status',
        'pushes.code',
        'pushes.confirmed_at_ms',
        'orders.shown_push_id',
      ])
      .where('pushes.id', '=', pushId)
      .executeTakeFirst();
    if (push === undefined) return undefined;
    const { terminal_code: terminalCode, status, code } = push;
    const wasShown = status === 'shown' || push.shown_push_id === pushId;
    return { terminalCode, status, code, wasAccepted: push.confirmed_at_ms !== null, wasShown };
  }

  /**
   * Returns whether a box shows this order, as far as this kind of confirmation tells, or the push of it that waits
   * for that. The box shows the order of its newest push that it did not refuse (clause SND-9). A push also ends with its
   * lifetime, even if the box is away. If somebody sets the calendar clock ahead, the gateway sends one push too many.
   */
  async pushOnBox(
    orderRef: string,
    terminalCode: string,
    confirm: Confirmation,
    atMs: number,
  ): Promise<'confirmed' | { id: string; sinceMs: number } | undefined> {
    const newest = await this.#db
      .selectFrom('pushes')
      .select(['id', 'order_ref', 'status', 'created_at_ms', 'expires_at_ms'])
      .where('terminal_code', '=', terminalCode)
      .where((it) => it.or([it('status', '<>', 'failed'), it('ended_at_ms', 'is', null)]))
      .orderBy('seq', 'desc')
      .limit(1)
      .executeTakeFirst();
    if (newest?.order_ref !== orderRef || newest.expires_at_ms <= atMs) return undefined;
    if (isConfirmation(newest.status, confirm)) return 'confirmed';
    return ['sent', 'accepted'].includes(newest.status) ? { id: newest.id, sinceMs: newest.created_at_ms } : undefined;
  }

  /** Returns the newest push that this box shows, with its order. Undefined if it shows none. */
  newestShown(terminalCode: string) {
    return this.#db
      .selectFrom('pushes')
      .innerJoin('orders', 'orders.id', 'pushes.order_ref')
      .select(['pushes.id', 'pushes.expires_at_ms', 'order_id', 'amount', 'qr_code', 'bank_account'])
      .where('pushes.terminal_code', '=', terminalCode)
      .where('pushes.status', '=', 'shown')
      .where('pushes.ended_at_ms', 'is', null)
      .orderBy('pushes.seq', 'desc')
      .limit(1)
      .executeTakeFirst();
  }

  /** Returns whether a push to the box had a lifetime that ends after this time, whatever its status is. */
  async hasPushSince(terminalCode: string, atMs: number): Promise<boolean> {
    const pushes = this.#db.selectFrom('pushes').select('id').where('terminal_code', '=', terminalCode);
    return (await pushes.where('expires_at_ms', '>', atMs).limit(1).executeTakeFirst()) !== undefined;
  }

  /** Returns the pushes that were stored for these boxes in this time, and of which no box has said anything. */
  async unansweredAmong(
    terminalCodes: readonly string[],
    stored: { fromMs: number; toMs: number },
  ): Promise<{ push: NewPush; order: NewOrder }[]> {
    const rows = await this.#early
      .selectFrom('pushes')
      .innerJoin('orders', 'orders.id', 'pushes.order_ref')
      .selectAll('orders')
      .select(['pushes.id as push_id', 'pushes.terminal_code as box', 'pushes.created_at_ms as pushed_at_ms'])
      .select('pushes.expires_at_ms')
      .where('pushes.terminal_code', 'in', terminalCodes)
      .where('pushes.ended_at_ms', 'is', null)
      .where('pushes.status', '=', 'sent')
      .where('pushes.created_at_ms', '>=', stored.fromMs)
      .where('pushes.created_at_ms', '<=', stored.toMs)
      .execute();
    return rows.map(({ push_id: id, box: terminal_code, pushed_at_ms: created_at_ms, expires_at_ms, ...order }) => {
      return { push: { id, order_ref: order.id, terminal_code, created_at_ms, expires_at_ms }, order };
    });
  }

  /** Returns the pushes that these boxes must withdraw, until they report their end. */
  toWithdrawAmong(terminalCodes: readonly string[]): Promise<WithdrawnPush[]> {
    return this.#early
      .selectFrom('pushes')
      .select(['id', 'terminal_code'])
      .where('terminal_code', 'in', terminalCodes)
      .where('ended_at_ms', 'is', null)
      .where((it) => it.or([it('status', '=', 'cancelled'), it('code', 'in', UNSURE_CODES)]))
      .execute();
  }

  /**
   * Returns the ids of the payments that these boxes have not reported and that were never sent to them, or that were
   * stored in this time.
   */
  unreportedAmong(
    terminalCodes: readonly string[],
    stored: { fromMs: number; toMs: number },
  ): Promise<{ id: string; terminal_code: string }[]> {
    return this.#early
      .selectFrom('notices')
      .select(['payment_id as id', 'terminal_code'])
      .where('terminal_code', 'in', terminalCodes)
      .where('reported_at_ms', 'is', null)
      .where((it) =>
        it.or([
          it('told_at_ms', 'is', null),
          it.and([it('created_at_ms', '>=', stored.fromMs), it('created_at_ms', '<=', stored.toMs)]),
        ]),
      )
      .execute();
  }
}
