import type { Kysely } from 'kysely';
import type { Logger } from '../../../lib/log.ts';
import type { Code } from '../../../protocol/codes.ts';
import { LIMITS } from '../../../protocol/fields.ts';
import type { DownOf, EndedHow } from '../../../protocol/messages.ts';
import { intact, onlyIntact } from '../integrity/checksums.ts';
import {
  type NewOrder,
  type NewPush,
  OPEN_PUSH,
  type OrderRow,
  type PushRow,
  type PushStatus,
  type Tables,
} from '../schema/tables.ts';
import { type HeldInTransaction, transact } from '../transact.ts';
import {
  addOrder,
  type Cancellation,
  cancelOrder,
  changePush,
  type Expected,
  endPush,
  hasNewerPush,
  insertOrder,
  isPushed,
  linkProblem,
  type OrderSides,
  type PushProblem,
  setOrderPushed,
  setOrderShown,
  setOrderStatus,
  type WithdrawnPush,
} from './order-changes.ts';
import { nextSeq, seqOf } from './seq.ts';

const PUSHES_LISTED_MAX = 20;
/** At most this many withdrawals are sent to a box at once. */
const WITHDRAWALS_MAX = 100;
/** After these failures a box may still have the push, so it gets the withdrawal again. */
export const UNSURE_CODES: Code[] = ['BOX_TIMEOUT', 'BOX_OFFLINE', 'REPLACED'];

export type Confirmation = 'accepted' | 'displayed';

/** A push that its box must remove from the screen, and why. */
export interface Withdrawal {
  id: string;
  why: DownOf<'withdraw'>['why'];
}

/** Stores orders and their pushes. Every method settles once the change is durable. */
export class OrderStore {
  readonly #db: Kysely<Tables>;
  readonly #early: Kysely<Tables>;
  readonly #log: Logger;

  /** `early`: for reads that another query follows before their caller answers. */
  constructor(db: Kysely<Tables>, log: Logger, early = db) {
    this.#db = db;
    this.#early = early;
    this.#log = log;
  }

  /** Stores an order with its sides, or nothing. Returns false if the account has the code already (clause MAT-1). */
  add(order: NewOrder, sides: OrderSides = {}): Promise<boolean> {
    return transact(this.#db, (trx) => addOrder(trx, order, sides));
  }

  /**
   * Returns the newest order of a QR that the partner generated. With an orderId, only an order that has it. The disk may
   * not have it yet: the caller stores a push of it, or reads more, before it answers.
   */
  async findPushed(partner: string, qrCode: string, orderId: string): Promise<OrderRow | undefined> {
    let query = this.#early
      .selectFrom('orders')
      .selectAll()
      .where('qr_code', '=', qrCode)
      .where('partner', '=', partner);
    if (orderId !== '') query = query.where('order_id', '=', orderId);
    return intact('orders', await query.orderBy('seq', 'desc').limit(1).executeTakeFirst());
  }

  /** Returns the order with this id of the gateway, or else the newest one with this orderId. */
  async find(idOrOrderId: string): Promise<OrderRow | undefined> {
    const orders = this.#db.selectFrom('orders').selectAll();
    const found =
      (await orders.where('id', '=', idOrOrderId).executeTakeFirst()) ??
      (await orders.where('order_id', '=', idOrOrderId).orderBy('seq', 'desc').limit(1).executeTakeFirst());
    return intact('orders', found);
  }

  /** Returns the id of the order that a push shows, even if a newer push shows it too. */
  async idByPush(pushId: string): Promise<string | undefined> {
    const found = this.#db.selectFrom('pushes').select('order_ref').where('id', '=', pushId);
    return (await found.executeTakeFirst())?.order_ref;
  }

  /** Returns orders, newest first. With `before`, an id, only older ones. */
  async newest(limit: number, before?: string): Promise<OrderRow[]> {
    const rows = this.#db.selectFrom('orders').selectAll().orderBy('seq', 'desc').limit(limit);
    const listed = before === undefined ? rows : rows.where('seq', '<', seqOf('orders', before));
    return onlyIntact('orders', await listed.execute(), this.#log);
  }

  /** Returns the newest pushes of each order, at most 20 of one, oldest first. */
  async pushesOf(orderIds: string[]): Promise<PushRow[]> {
    if (orderIds.length === 0) return [];
    const orders = this.#db
      .selectFrom('orders')
      .where('id', 'in', orderIds)
      .select((it) => {
        const newest = it
          .selectFrom('pushes')
          .select('seq')
          .whereRef('order_ref', '=', 'orders.id')
          .orderBy('seq', 'desc');
        const oldestListed = newest.limit(1).offset(PUSHES_LISTED_MAX - 1);
        return ['id', it.fn.coalesce(oldestListed, it.lit(0)).as('from_seq')];
      });
    const pushes = await this.#db
      .selectFrom(orders.as('listed'))
      .innerJoin('pushes', (on) =>
        on.onRef('pushes.order_ref', '=', 'listed.id').onRef('pushes.seq', '>=', 'listed.from_seq'),
      )
      .selectAll('pushes')
      .orderBy('pushes.seq')
      .execute();
    return onlyIntact('pushes', pushes, this.#log);
  }

  /**
   * Stores a push before it is sent, together with its order if that is new. Stores nothing if something is not as
   * `expected` any more, and returns what. Another gateway may have changed it.
   */
  startPush(push: NewPush, newOrder: NewOrder | undefined, expected: Expected = {}): Promise<PushProblem | undefined> {
    const { bankAccount, seen, newestOnBox } = expected;
    return transact(this.#db, async (trx) => {
      const problem = bankAccount && (await linkProblem(trx, push.terminal_code, bankAccount));
      if (problem) return problem;
      if (newestOnBox && (await hasNewerPush(trx, push.terminal_code, newestOnBox))) return 'pushed meanwhile';
      if (newOrder === undefined) {
        if (!(await setOrderPushed(trx, push, seen))) {
          if (seen === undefined) throw new Error('the order of the push was deleted');
          return 'pushed meanwhile';
        }
      } else {
        if (seen === 'no order' && (await isPushed(trx, newOrder))) return 'pushed meanwhile';
        await insertOrder(trx, newOrder, push.id);
      }
      const begun = { status: 'sent', code: null, confirmed_at_ms: null, ended_at_ms: null } as const;
      await trx
        .insertInto('pushes')
        .values({ ...push, ...begun, seq: nextSeq(trx, 'pushes') })
        .execute();
      return undefined;
    });
  }

  /** Returns whether the box has given this confirmation of a push. */
  async isConfirmed(pushId: string, confirm: Confirmation): Promise<boolean> {
    const push = await this.#db.selectFrom('pushes').select('status').where('id', '=', pushId).executeTakeFirst();
    return push !== undefined && isConfirmation(push.status, confirm);
  }

  /** Confirms an open push. Returns false for any other push, and does not change it. */
  async confirmPush(pushId: string, terminalCode: string, how: 'accepted' | 'shown', atMs: number): Promise<boolean> {
    return transact(this.#db, async (trx) => {
      const among: PushStatus[] = how === 'shown' ? ['sent', 'accepted'] : ['sent'];
      const push = { id: pushId, terminalCode, among };
      if (!(await changePush(trx, push, { status: how, confirmed_at_ms: atMs }))) return false;
      if (how === 'shown') await setOrderShown(trx, { pushId, terminalCode }, atMs);
      return true;
    });
  }

  /** Marks an unfinished push as failed. `boxKnows`: the box itself refused it. Returns whether it was unfinished. */
  async failPush(pushId: string, terminalCode: string, code: Code, atMs: number, boxKnows: boolean): Promise<boolean> {
    return transact(this.#db, async (trx) => {
      const push = { id: pushId, terminalCode, among: ['sent', 'accepted'] as const };
      const failed = { status: 'failed', code, ended_at_ms: boxKnows ? atMs : null } as const;
      if (!(await changePush(trx, push, failed))) return false;
      await setOrderStatus(trx, pushId, 'failed', atMs);
      await trx.updateTable('orders').set({ failure: code }).where('last_push_id', '=', pushId).execute();
      return true;
    });
  }

  /** Cancels an order that has not ended, and its open pushes. Returns undefined for a paid order. */
  cancel(orderRef: string, atMs: number): Promise<Cancellation | undefined> {
    return transact(this.#db, (trx) => cancelOrder(trx, orderRef, atMs));
  }

  /** Records that the box has ended a push. Returns whether the push belongs to this box. */
  async endPush(pushId: string, terminalCode: string, how: EndedHow, atMs: number): Promise<boolean> {
    return transact(this.#db, (trx) => endPush(trx, { id: pushId, terminalCode }, how, atMs));
  }

  /** Records that the box knows the end of a failed or cancelled push. Returns false for any other push. */
  markEndedOnBox(pushId: string, terminalCode: string, atMs: number): Promise<boolean> {
    const push = { id: pushId, terminalCode, among: ['failed', 'cancelled'] as const };
    return changePush(this.#db, push, { ended_at_ms: atMs });
  }

  /** Records that the box shows a failed or cancelled push. Returns false for any other push. */
  markStillOnBox(pushId: string, terminalCode: string): Promise<boolean> {
    const push = { id: pushId, terminalCode, among: ['failed', 'cancelled'] as const };
    return changePush(this.#db, push, { ended_at_ms: null });
  }

  /**
   * Ends the open pushes that a box does not show according to its hello, because it was replaced or lost its disk.
   * Returns false, and ends no further one, once another session has the box, which may show them.
   */
  async endAllExcept(
    shownPushId: string | null,
    terminalCode: string,
    atMs: number,
    isHeld?: HeldInTransaction,
  ): Promise<boolean> {
    for (const id of await this.openPushIds(terminalCode)) {
      if (id === shownPushId) continue;
      const isDone = await transact(this.#db, async (trx) => {
        if (isHeld !== undefined && !(await isHeld(trx))) return false;
        await endPush(trx, { id, terminalCode }, 'interrupted', atMs);
        return true;
      });
      if (!isDone) return false;
    }
    return true;
  }

  /** Returns the newest failed or cancelled pushes that a box may still show, until it reports their end (MSG-9). */
  async toWithdraw(terminalCode: string): Promise<Withdrawal[]> {
    const pushes = await this.#db
      .selectFrom('pushes')
      .innerJoin('orders', 'orders.id', 'pushes.order_ref')
      .select(['pushes.id', 'pushes.status', 'orders.status as order_status'])
      .where('pushes.terminal_code', '=', terminalCode)
      .where('pushes.ended_at_ms', 'is', null)
      .where((it) => it.or([it('pushes.status', '=', 'cancelled'), it('pushes.code', 'in', UNSURE_CODES)]))
      .orderBy('pushes.seq', 'desc')
      .limit(WITHDRAWALS_MAX)
      .execute();
    return pushes.map(({ id, status, order_status }) => {
      if (status !== 'cancelled') return { id, why: 'timeout' };
      return { id, why: order_status === 'paid' ? 'paid' : 'cancelled' };
    });
  }

  /**
   * Marks unfinished pushes as failed, and returns them: those of an earlier run of the gateway, those of one box, or
   * those that were created so long ago that no gateway awaits them. No partner has received a success for them.
   */
  async failUnfinished(
    atMs: number,
    confirm: Confirmation,
    only: { terminalCode?: string; except?: readonly string[]; createdBeforeMs?: number } = {},
  ): Promise<WithdrawnPush[]> {
    const { terminalCode, except = [], createdBeforeMs } = only;
    // Each push that is found here is read again by the change.
    let unfinished = this.#early
      .selectFrom('pushes')
      .select(['id', 'terminal_code'])
      .where('status', 'in', confirm === 'displayed' ? ['sent', 'accepted'] : ['sent']);
    if (terminalCode !== undefined) {
      unfinished = unfinished.where('terminal_code', '=', terminalCode).where('ended_at_ms', 'is', null);
    }
    if (createdBeforeMs !== undefined) unfinished = unfinished.where('created_at_ms', '<', createdBeforeMs);
    const failed: WithdrawnPush[] = [];
    for (const push of await unfinished.execute()) {
      if (except.includes(push.id)) continue;
      if (await this.failPush(push.id, push.terminal_code, 'BOX_OFFLINE', atMs, false)) failed.push(push);
    }
    return failed;
  }

  /** Returns the newest pushes that a box may show: they are on their way or displayed (clause MSG-10). */
  async openPushIds(terminalCode: string): Promise<string[]> {
    const pushes = await this.#db
      .selectFrom('pushes')
      .select('id')
      .where('terminal_code', '=', terminalCode)
      .where('status', 'in', OPEN_PUSH)
      .where('ended_at_ms', 'is', null)
      .orderBy('seq', 'desc')
      .limit(LIMITS.openPushIdsMax)
      .execute();
    return pushes.map(({ id }) => id);
  }
}

/** Returns whether a push in this status has this kind of confirmation. */
export function isConfirmation(status: PushStatus, confirm: Confirmation): boolean {
  return status === 'shown' || (confirm === 'accepted' && status === 'accepted');
}
