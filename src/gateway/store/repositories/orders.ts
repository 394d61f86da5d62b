import type { Kysely } from 'kysely';
import type { Logger } from '../../../lib/log.ts';
import type { Code } from '../../../protocol/codes.ts';
import { LIMITS } from '../../../protocol/fields.ts';
import type { EndedHow } from '../../../protocol/messages.ts';
import { intact, onlyIntact } from '../integrity/checksums.ts';
import { OPEN_PUSH, type OrderRow, type OrderStatus, type PushRow, type Tables } from '../schema/tables.ts';
import { newestPushes } from './newest-pushes.ts';
import { insertQrCode } from './qr-codes.ts';
import { nextSeq, seqOf } from './seq.ts';
import { type Withdrawal, withdrawalsFor } from './withdrawals.ts';

const ORDER_AFTER: Record<EndedHow, OrderStatus> = {
  expired: 'expired',
  replaced: 'replaced',
  withdrawn: 'cancelled',
  dismissed: 'dismissed',
  interrupted: 'failed',
};

export type NewOrder = Omit<
  OrderRow,
  'seq' | 'status' | 'failure' | 'last_push_id' | 'shown_on' | 'shown_push_id' | 'paid_at_ms' | 'updated_at_ms'
>;
export type NewPush = Pick<PushRow, 'id' | 'order_ref' | 'terminal_code' | 'created_at_ms' | 'expires_at_ms'>;

/** Orders and their pushes. Every method settles once the change would survive the end of the process. */
export class OrderStore {
  readonly #db: Kysely<Tables>;
  readonly #log: Logger;

  constructor(db: Kysely<Tables>, log: Logger) {
    this.#db = db;
    this.#log = log;
  }

  /** With `qrRef`, the name in the link to its picture, its QR is kept too: both or neither. */
  async add(order: NewOrder, qrRef?: string): Promise<void> {
    if (qrRef === undefined) return insertOrder(this.#db, order);
    await this.#db.transaction().execute(async (trx) => {
      await insertQrCode(trx, qrRef, order.qr_code, order.created_at_ms);
      await insertOrder(trx, order);
    });
  }

  /** The order of a QR that the partner generated, under the same orderId where the push names one. */
  async findPushed(partner: string, qrCode: string, orderId: string): Promise<OrderRow | undefined> {
    let query = this.#db.selectFrom('orders').selectAll().where('qr_code', '=', qrCode).where('partner', '=', partner);
    if (orderId !== '') query = query.where('order_id', '=', orderId);
    return intact('orders', await query.orderBy('seq', 'desc').limit(1).executeTakeFirst());
  }

  /** By the gateway's own id, else the newest with this orderId. */
  async find(idOrOrderId: string): Promise<OrderRow | undefined> {
    const orders = this.#db.selectFrom('orders').selectAll();
    const found =
      (await orders.where('id', '=', idOrOrderId).executeTakeFirst()) ??
      (await orders.where('order_id', '=', idOrOrderId).orderBy('seq', 'desc').limit(1).executeTakeFirst());
    return intact('orders', found);
  }

  /** Newest first; with `before`, an id, only those that are older. */
  async newest(limit: number, before?: string): Promise<OrderRow[]> {
    const rows = this.#db.selectFrom('orders').selectAll().orderBy('seq', 'desc').limit(limit);
    const listed = before === undefined ? rows : rows.where('seq', '<', seqOf('orders', before));
    return onlyIntact('orders', await listed.execute(), this.#log);
  }

  /** The newest pushes of each order, at most 20 of one, oldest first. */
  async pushesOf(orderIds: string[]): Promise<PushRow[]> {
    return onlyIntact('pushes', await newestPushes(this.#db, orderIds), this.#log);
  }

  /** Keeps a push before it is sent, with its order where that is new too. */
  async startPush(push: NewPush, newOrder: NewOrder | undefined): Promise<void> {
    await this.#db.transaction().execute(async (trx) => {
      if (newOrder !== undefined) await insertOrder(trx, newOrder);
      const begun = { status: 'sent', code: null, confirmed_at_ms: null, ended_at_ms: null } as const;
      await trx
        .insertInto('pushes')
        .values({ ...push, ...begun, seq: nextSeq('pushes') })
        .execute();
      const pushed = await trx
        .updateTable('orders')
        .set({ last_push_id: push.id, failure: null, updated_at_ms: push.created_at_ms })
        .where('id', '=', push.order_ref)
        .executeTakeFirst();
      if (pushed.numUpdatedRows === 0n) throw new Error('the order of the push is there no longer');
      await setOrderStatus(trx, push.id, 'pushed', push.created_at_ms);
    });
  }

  /**
   * Whether an order has the screen of a box, as far as this kind of confirmation tells: the newest push to that
   * box, but for those that it refused, is the order's, whatever became of the others (clause SND-9). Its lifetime ends it
   * also where the box cannot be heard to say so; a calendar clock that is set ahead costs one push too many.
   */
  async isOnBox(
    orderRef: string,
    terminalCode: string,
    confirm: 'accepted' | 'displayed',
    atMs: number,
  ): Promise<boolean> {
    const newest = await this.#db
      .selectFrom('pushes')
      .select(['order_ref', 'status', 'expires_at_ms'])
      .where('terminal_code', '=', terminalCode)
      .where((it) => it.or([it('status', '<>', 'failed'), it('ended_at_ms', 'is', null)]))
      .orderBy('seq', 'desc')
      .limit(1)
      .executeTakeFirst();
    if (newest?.order_ref !== orderRef || newest.expires_at_ms <= atMs) return false;
    return newest.status === 'shown' || (confirm === 'accepted' && newest.status === 'accepted');
  }

  /** Whether the box has confirmed a push, in the way that is asked for. */
  async isConfirmed(pushId: string, confirm: 'accepted' | 'displayed'): Promise<boolean> {
    const push = await this.#db.selectFrom('pushes').select('status').where('id', '=', pushId).executeTakeFirst();
    return push?.status === 'shown' || (confirm === 'accepted' && push?.status === 'accepted');
  }

  /** Whether the push was still open, so that this changed it; a withdrawn or ended one stays as it is. */
  async confirmPush(pushId: string, terminalCode: string, how: 'accepted' | 'shown', atMs: number): Promise<boolean> {
    return this.#db.transaction().execute(async (trx) => {
      const changed = await trx
        .updateTable('pushes')
        .set({ status: how, confirmed_at_ms: atMs })
        .where('id', '=', pushId)
        .where('terminal_code', '=', terminalCode)
        .where('status', 'in', how === 'shown' ? ['sent', 'accepted'] : ['sent'])
        .executeTakeFirst();
      if (changed.numUpdatedRows === 0n) return false;
      if (how === 'shown') {
        await setOrderStatus(trx, pushId, 'shown', atMs);
        await trx
          .updateTable('orders')
          .set({ shown_on: terminalCode, shown_push_id: pushId })
          .where('last_push_id', '=', pushId)
          .execute();
      }
      return true;
    });
  }

  /** Ends an unfinished push as failed; `boxKnows` when the box itself refused it. Whether it was unfinished. */
  async failPush(pushId: string, terminalCode: string, code: Code, atMs: number, boxKnows: boolean): Promise<boolean> {
    return this.#db.transaction().execute(async (trx) => {
      const changed = await trx
        .updateTable('pushes')
        .set({ status: 'failed', code, ended_at_ms: boxKnows ? atMs : null })
        .where('id', '=', pushId)
        .where('terminal_code', '=', terminalCode)
        .where('status', 'in', ['sent', 'accepted'])
        .executeTakeFirst();
      if (changed.numUpdatedRows === 0n) return false;
      await setOrderStatus(trx, pushId, 'failed', atMs);
      await trx.updateTable('orders').set({ failure: code }).where('last_push_id', '=', pushId).execute();
      return true;
    });
  }

  /** Cancels an order: its pushes that a box may still hold, which are to be withdrawn. `undefined` for one that is paid. */
  async cancel(orderRef: string, atMs: number): Promise<Pick<PushRow, 'id' | 'terminal_code'>[] | undefined> {
    return this.#db.transaction().execute(async (trx) => {
      const changed = await trx
        .updateTable('orders')
        .set({ status: 'cancelled', updated_at_ms: atMs })
        .where('id', '=', orderRef)
        .where('status', '<>', 'paid')
        .executeTakeFirst();
      if (changed.numUpdatedRows === 0n) return undefined;
      return trx
        .updateTable('pushes')
        .set({ status: 'cancelled' })
        .where('order_ref', '=', orderRef)
        .where('status', 'in', OPEN_PUSH)
        .returning(['id', 'terminal_code'])
        .execute();
    });
  }

  /** The box has ended a push. Whether the push is one of this box. */
  async endPush(pushId: string, terminalCode: string, how: EndedHow, atMs: number): Promise<boolean> {
    return this.#db.transaction().execute(async (trx) => {
      const push = await trx
        .selectFrom('pushes')
        .select('status')
        .where('id', '=', pushId)
        .where('terminal_code', '=', terminalCode)
        .executeTakeFirst();
      if (push === undefined) return false;
      const decided = push.status === 'failed' || push.status === 'cancelled' || push.status === 'ended';
      await trx
        .updateTable('pushes')
        .set({ status: decided ? push.status : 'ended', ended_at_ms: atMs })
        .where('id', '=', pushId)
        .execute();
      if (!decided) await setOrderStatus(trx, pushId, ORDER_AFTER[how], atMs);
      return true;
    });
  }

  /** The box knows that a push that had failed or was cancelled is over. Whether it was one of those, of this box. */
  markEndedOnBox(pushId: string, terminalCode: string, atMs: number): Promise<boolean> {
    return this.#setInVain(pushId, terminalCode, atMs);
  }

  /** Takes down that a box shows a push that had failed or was cancelled. Whether it was one of those, of this box. */
  markStillOnBox(pushId: string, terminalCode: string): Promise<boolean> {
    return this.#setInVain(pushId, terminalCode, null);
  }

  async #setInVain(pushId: string, terminalCode: string, ended_at_ms: number | null): Promise<boolean> {
    const changed = await this.#db
      .updateTable('pushes')
      .set({ ended_at_ms })
      .where('id', '=', pushId)
      .where('terminal_code', '=', terminalCode)
      .where('status', 'in', ['failed', 'cancelled'])
      .executeTakeFirst();
    return changed.numUpdatedRows > 0n;
  }

  /** Ends the pushes that a box does not show any more, as its hello tells: it was swapped, or its disk was lost. */
  async endAllExcept(shownPushId: string | null, terminalCode: string, atMs: number): Promise<void> {
    for (const id of await this.openPushIds(terminalCode)) {
      if (id !== shownPushId) await this.endPush(id, terminalCode, 'interrupted', atMs);
    }
  }

  /**
   * Pushes that failed or were cancelled and that the box may still show, as it has not said that they are over
   * (PROTOCOL.md, clause MSG-9).
   */
  toWithdraw(terminalCode: string): Promise<Withdrawal[]> {
    return withdrawalsFor(this.#db, terminalCode);
  }

  /**
   * Ends unfinished pushes as failed, those that nobody awaits: of an earlier run of the gateway, or of one box. Nobody was
   * told that they succeeded.
   */
  async failUnfinished(
    atMs: number,
    confirm: 'accepted' | 'displayed',
    only?: { terminalCode: string; except: readonly string[] },
  ): Promise<void> {
    let unfinished = this.#db
      .selectFrom('pushes')
      .select(['id', 'terminal_code'])
      .where('status', 'in', confirm === 'displayed' ? ['sent', 'accepted'] : ['sent']);
    if (only !== undefined) {
      unfinished = unfinished.where('terminal_code', '=', only.terminalCode).where('ended_at_ms', 'is', null);
    }
    for (const { id, terminal_code } of await unfinished.execute()) {
      if (only?.except.includes(id)) continue;
      await this.failPush(id, terminal_code, 'BOX_OFFLINE', atMs, false);
    }
  }

  /** The newest pushes that a box may show with right: on their way or there (clause MSG-10). */
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

async function insertOrder(db: Kysely<Tables>, order: NewOrder): Promise<void> {
  const pushed = { failure: null, last_push_id: null, shown_on: null, shown_push_id: null };
  const begun = { status: 'created', paid_at_ms: null, updated_at_ms: order.created_at_ms } as const;
  await db
    .insertInto('orders')
    .values({ ...order, ...pushed, ...begun, seq: nextSeq('orders') })
    .execute();
}

/** An order follows its newest push only, and a paid one stays paid. */
async function setOrderStatus(db: Kysely<Tables>, pushId: string, status: OrderStatus, atMs: number): Promise<void> {
  await db
    .updateTable('orders')
    .set({ status, updated_at_ms: atMs })
    .where('last_push_id', '=', pushId)
    .where('status', '<>', 'paid')
    .execute();
}
