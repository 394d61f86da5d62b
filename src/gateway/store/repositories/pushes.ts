import type { Kysely } from 'kysely';
import type { PushStatus, Tables } from '../schema/tables.ts';
import type { WithdrawnPush } from './order-changes.ts';
import { UNSURE_CODES } from './orders.ts';

/** The state of a push. */
export interface PushState {
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

  constructor(db: Kysely<Tables>) {
    this.#db = db;
  }

  /** Returns the state of a push, or undefined if there is none. */
  async state(pushId: string): Promise<PushState | undefined> {
    const push = await this.#db
      .selectFrom('pushes')
      .innerJoin('orders', 'orders.id', 'pushes.order_ref')
      .select(['pushes.status', 'pushes.code', 'pushes.confirmed_at_ms', 'orders.shown_push_id'])
      .where('pushes.id', '=', pushId)
      .executeTakeFirst();
    if (push === undefined) return undefined;
    const { status, code } = push;
    const wasShown = status === 'shown' || push.shown_push_id === pushId;
    return { status, code, wasAccepted: push.confirmed_at_ms !== null, wasShown };
  }

  /** Returns the pushes that these boxes must withdraw, until they report their end. */
  toWithdrawAmong(terminalCodes: readonly string[]): Promise<WithdrawnPush[]> {
    return this.#db
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
    return this.#db
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
