import type { ShowBody } from '../../protocol/messages.ts';
import type { Partner } from '../common/directory.ts';
import { PUSHED_MEANWHILE } from '../common/place.ts';
import { accept, type Result } from '../common/result.ts';
import type { Stored } from '../common/stored.ts';
import type { World } from '../common/world.ts';
import type { SeenOrder } from '../store/repositories/order-changes.ts';
import type { NewOrder, NewPush } from '../store/schema/tables.ts';
import { joinedPush } from './joined-push.ts';
import { NO_NAMES, pushOf } from './order-push.ts';
import { warnOfOldOrder } from './order-warnings.ts';
import type { CallMode } from './partner-calls.ts';
import type { Sendable } from './send-qr.ts';

/** A push is tried so often while other gateways push its order in the same moment. */
const TRIES_MAX = 10;

/** The part of the hub that pushes orders to boxes. */
export interface PushHub {
  /** Returns whether a box is connected, here or at another gateway. */
  reachable(terminalCode: string): Promise<boolean>;
  /** Returns the codes of connected boxes, at most `limit`. With `among`, only of these. */
  onlineCodes(limit: number, among?: readonly string[]): Promise<string[]>;
  /** With `seen`, returns PUSHED_MEANWHILE if another gateway has pushed the order since. */
  push(push: NewPush, newOrder: NewOrder | undefined, show: ShowBody, seen?: SeenOrder): Promise<Result<undefined>>;
  withdrawPush(terminalCode: string, pushId: string, why: 'cancelled' | 'paid'): void;
}

/** The first look of a call. */
interface Looked {
  /** The newest push of the order. Null if it had none. */
  first?: { pushId: string | null };
}

/** Pushes the orders of partners to boxes, each once. */
export class PartnerPushes {
  readonly #world: World;
  readonly #stored: Stored;
  readonly #hub: PushHub;
  /** The pushes that this gateway awaits, by what makes two of them the same. */
  readonly #awaited = new Map<string, Promise<Result<undefined>>>();

  constructor(world: World, stored: Stored, hub: PushHub) {
    this.#world = world;
    this.#stored = stored;
    this.#hub = hub;
  }

  /**
   * Pushes an order to a box once. A second push joins the first while that one is awaited or on the screen (clause
   * SND-9). A push with a verbatim content joins only an awaited one with the same content.
   */
  async push(partner: Partner, sendable: Sendable, call: CallMode): Promise<Result<undefined>> {
    const { request, box, qr } = sendable;
    const { purpose = request.content } = qr;
    if (!['', purpose].includes(request.content) && !call.isVerbatim) {
      call.notes.warn('content: the box shows that of the QR, which is what the customer pays');
    }
    if (request.orderId === '') return this.#push(partner, sendable, call);
    const content = call.isVerbatim ? request.content : '';
    const key = JSON.stringify([partner.username, box.terminalCode, request.orderId, request.qrCode, content]);
    const awaited = this.#awaited.get(key);
    if (awaited !== undefined) return awaited;
    const pushed = this.#pushNamed(partner, sendable, call).finally(() => this.#awaited.delete(key));
    this.#awaited.set(key, pushed);
    return pushed;
  }

  /** Pushes an order with an orderId. Looks again while other gateways push the same order in this moment. */
  async #pushNamed(partner: Partner, sendable: Sendable, call: CallMode): Promise<Result<undefined>> {
    const looked: Looked = {};
    for (let tries = 1; ; tries += 1) {
      const result = await this.#push(partner, sendable, call, looked);
      if (result !== PUSHED_MEANWHILE || tries === TRIES_MAX) return result;
    }
  }

  async #push(
    partner: Partner,
    { request, amount, account, box, qr, payableMs }: Sendable,
    { notes, isVerbatim = false }: CallMode,
    looked: Looked = {},
  ): Promise<Result<undefined>> {
    const { random, clock, config, log } = this.#world;
    const known = await this.#stored.store.orders.findPushed(partner.username, request.qrCode, request.orderId);
    const isRepeatable = request.orderId !== '' && !isVerbatim;
    looked.first ??= { pushId: known?.last_push_id ?? null };
    if (isRepeatable && known !== undefined) {
      const newest = known.last_push_id ?? undefined;
      const begunElsewhere = newest === looked.first.pushId ? undefined : newest;
      const repeated = { orderRef: known.id, terminalCode: box.terminalCode, begunElsewhere };
      const joined = await joinedPush(this.#world, this.#stored, repeated);
      if (joined !== undefined) return joined;
    }
    const nowMs = clock.wallMs();
    warnOfOldOrder(known, notes);
    const seen = {
      amount,
      bank_account: account.bankAccount,
      bank_code: account.bankCode,
      user_bank_name: account.userBankName,
      qr_code: request.qrCode,
    };
    // The customer must read the content that he pays (PROTOCOL.md, clause SND-10).
    const content = isVerbatim ? request.content : (qr.purpose ?? (request.content || known?.content || ''));
    const made: NewOrder = {
      ...NO_NAMES,
      ...seen,
      id: random.uuid(),
      partner: partner.username,
      order_id: request.orderId,
      content,
      trans_type: 'C',
      terminal_code: box.terminalCode,
      created_at_ms: nowMs,
    };
    const { push, show } = pushOf(
      { ...(known ?? made), ...seen, content },
      {
        pushId: random.uuid(),
        terminalCode: box.terminalCode,
        nowMs,
        lifetimeMs: Math.min(config.qrLifetimeSeconds * 1000, payableMs),
      },
    );
    const lookedAt: SeenOrder =
      known === undefined ? 'no order' : { lastPushId: known.last_push_id, status: known.status };
    const newOrder = known === undefined ? made : undefined;
    const result = await this.#hub.push(push, newOrder, show, isRepeatable ? lookedAt : undefined);
    if (!result.ok) return result;
    log.info('push-confirmed', { box: box.terminalCode, pushId: push.id, orderId: show.orderId, amount });
    return accept(undefined);
  }
}
