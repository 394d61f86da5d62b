import { withDeadline } from '../../lib/clock.ts';
import type { Code } from '../../protocol/codes.ts';
import type { ShowBody } from '../../protocol/messages.ts';
import { NOT_HERE, PUSHED_MEANWHILE, type Questions } from '../common/place.ts';
import { accept, type Result, refuse } from '../common/result.ts';
import type { Stored } from '../common/stored.ts';
import type { World } from '../common/world.ts';
import { pushOf } from '../partner/order-push.ts';
import { outcomeOf, refusalFor } from '../partner/push-outcome.ts';
import type { SeenOrder } from '../store/repositories/order-changes.ts';
import type { NewOrder, NewPush } from '../store/schema/tables.ts';
import type { Confirmations } from './confirmations.ts';
import { PushesElsewhere } from './pushes-elsewhere.ts';
import type { Session } from './session.ts';
import type { BoxHolder, Whereabouts } from './whereabouts.ts';

/** A push for which nobody waits is failed this long after its deadline. */
const STALE_AFTER_MS = 5_000;
/** A first question of this age or less needs no look at the row: a withdrawal since then has come here, too. */
const ASKED_NOW_MS = 500;
/** How many pushes of other gateways are remembered. A question about one of them comes again. */
const RECENT_MAX = 10_000;

/** A gateway of several that stops waits this long for its pushes, whose boxes are at other gateways or go there. */
const LAST_PUSHES_MS = 400;
/** The answer to the pushes that a gateway awaits when it stops. */
export const STOPPING = refuse('BOX_OFFLINE', 'the gateway is stopping');
/** A push whose box changes its gateway under it is repeated so often. */
const REPEATS_MAX = 3;

/** A push as it is sent once, and the monotonic time of the call and of its deadline. */
interface PushOnce {
  push: NewPush;
  newOrder: NewOrder | undefined;
  show: ShowBody;
  seen: SeenOrder | undefined;
  /** A repeated push is sent only while its box has no newer one than the push that has failed. */
  newestOnBox?: string;
  begunMs: number;
  untilMs: number;
}

/** The reason for which a push leaves its box. */
export type Withdrawing = 'cancelled' | 'paid' | 'timeout';

/**
 * Pushes orders to boxes, and withdraws them. The gateway that has the session of the box shows the push. Any other one
 * stores it, asks that gateway to show it, and reads the row of the push while it waits. The row decides.
 */
export class Pushes {
  readonly #world: World;
  readonly #stored: Stored;
  readonly #sessions: ReadonlyMap<string, Session>;
  readonly #confirmations: Confirmations;
  readonly #whereabouts: Whereabouts;
  readonly #elsewhere: PushesElsewhere;
  /** The calls that are not answered. */
  readonly #underWay = new Set<Promise<unknown>>();
  /** The pushes of other gateways that are shown here and unanswered, by pushId. */
  readonly #showing = new Map<string, Promise<Result<undefined>>>();
  /** The pushes of other gateways that were shown here lately. */
  readonly #recent = new RecentIds();

  constructor(
    world: World,
    stored: Stored,
    parts: { sessions: ReadonlyMap<string, Session>; confirmations: Confirmations; whereabouts: Whereabouts },
  ) {
    this.#world = world;
    this.#stored = stored;
    this.#sessions = parts.sessions;
    this.#confirmations = parts.confirmations;
    this.#whereabouts = parts.whereabouts;
    this.#elsewhere = new PushesElsewhere(world, stored, parts.confirmations);
  }

  /**
   * Stores a push, sends it to its box and waits for the confirmation (PROTOCOL.md, clauses SND-3 to SND-6). The
   * confirmation is a report, which the hub passes to `Confirmations.settle`. With `seen`, returns PUSHED_MEANWHILE if
   * another gateway has pushed the order since, and sends nothing.
   *
   * A box that changes its gateway is awaited until the deadline. A push under which it changes its gateway has failed,
   * and the order is pushed again (clause SHA-5).
   */
  push(push: NewPush, newOrder: NewOrder | undefined, show: ShowBody, seen?: SeenOrder): Promise<Result<undefined>> {
    const pushed = this.#push(push, newOrder, show, seen).finally(() => this.#underWay.delete(pushed));
    this.#underWay.add(pushed);
    return pushed;
  }

  async #push(
    push: NewPush,
    newOrder: NewOrder | undefined,
    show: ShowBody,
    seen: SeenOrder | undefined,
  ): Promise<Result<undefined>> {
    const { clock, config, log, random } = this.#world;
    const { terminal_code: box } = push;
    const begunMs = clock.monotonicMs();
    const untilMs = begunMs + config.confirmTimeoutMs;
    let once: PushOnce = { push, newOrder, show, seen, begunMs, untilMs };
    let earlier: Result<undefined> | undefined;
    for (let repeats = 0; ; repeats += 1) {
      const holder = await this.#whereabouts.find(box, untilMs);
      if (holder === undefined) return earlier ?? NOT_HERE;
      const result = await this.#pushOnce(holder, once);
      // A cancellation, a payment or a push that came meanwhile counts, also the push of another order.
      if (earlier !== undefined && result === PUSHED_MEANWHILE) return earlier;
      const isLost = !result.ok && result.code === 'BOX_OFFLINE';
      if (!isLost || repeats === REPEATS_MAX || !(await this.#whereabouts.hasLeft(box, holder))) return result;
      const [failed, pushId] = [once.push.id, random.uuid()];
      log.info('push-repeated', { box, pushId, failed, reason: 'the box has changed its gateway' });
      const again = { push: { ...push, id: pushId }, newOrder: undefined, show: { ...show, pushId } };
      once = { ...again, seen: { lastPushId: failed, status: 'failed' }, newestOnBox: failed, begunMs, untilMs };
      earlier = result;
    }
  }

  /** Pushes to who has the box, once. */
  async #pushOnce(
    holder: BoxHolder,
    { push, newOrder, show, seen, newestOnBox, begunMs, untilMs }: PushOnce,
  ): Promise<Result<undefined>> {
    const { clock, changes, place, config } = this.#world;
    const { confirm, confirmTimeoutMs } = config;
    const { orders } = this.#stored.store;
    const { id, terminal_code: terminalCode } = push;
    const session = typeof holder === 'string' ? undefined : holder;
    const sessionMs = session?.ageMs() ?? 0;
    const waitedMs = Math.floor(clock.monotonicMs() - begunMs);
    const withinMs = Math.max(0, untilMs - clock.monotonicMs());
    const confirmed = this.#confirmations.wait(terminalCode, id);
    const over = new AbortController();
    try {
      // At a store of its own, nothing that this gateway has read is older than the rows.
      const expected = place.sharing && { bankAccount: show.bankAccount, seen, newestOnBox };
      const problem = await orders.startPush(push, newOrder, expected).catch((error: unknown) => {
        // The store may have saved the push anyway. The next resend ends it.
        session?.needResend();
        throw error;
      });
      if (problem !== undefined) return refusalFor(problem);
      changes.publish('orders');
      if (typeof holder === 'string')
        void this.#elsewhere.ask(holder, terminalCode, show, { begunMs, signal: over.signal });
      else if (this.#sessions.get(terminalCode) === holder)
        this.#send(holder, { ...show, expiresInMs: Math.max(0, show.expiresInMs - waitedMs) }, sessionMs);
      else this.#confirmations.settle(terminalCode, id, refuse('BOX_OFFLINE', 'the connection to the box was lost'));
      const answer = () => withDeadline(clock, withinMs, confirmed);
      const first = await answer();
      if (first?.ok === true) return first;
      const result = first ?? refuse('BOX_TIMEOUT', `no confirmation within ${confirmTimeoutMs} ms`);
      if (await this.#fail(push, result.code)) return result;
      if (await orders.isConfirmed(id, confirm)) return accept(undefined);
      return first ?? (await answer()) ?? result;
    } finally {
      over.abort();
      this.#confirmations.forget(terminalCode, id);
      changes.publish('orders');
    }
  }

  /** Shows a push that another gateway has stored, if its box is here. Settles as `push` does. */
  show({ box, show, askedAtMs }: Questions['push']['question']): Promise<Result<undefined>> {
    const session = this.#sessions.get(box);
    if (session === undefined) return Promise.resolve(NOT_HERE);
    const { pushId } = show;
    const known = this.#showing.get(pushId);
    if (known !== undefined) return known;
    const isNew = this.#recent.add(pushId) && this.#isOfNow(askedAtMs);
    const showing = this.#show(box, session, show, isNew).finally(() => this.#showing.delete(pushId));
    this.#showing.set(pushId, showing);
    return showing;
  }

  /** Shows a push that another gateway has stored, and whose question did not arrive. */
  showMissed(push: NewPush, order: NewOrder): void {
    const { id, terminal_code: box, created_at_ms: nowMs, expires_at_ms } = push;
    if (this.#showing.has(id) || this.#confirmations.isAwaited(box, id)) return;
    const { show } = pushOf(order, { pushId: id, terminalCode: box, nowMs, lifetimeMs: expires_at_ms - nowMs });
    const leftMs = expires_at_ms - this.#world.clock.wallMs();
    void this.show({ box, show: { ...show, expiresInMs: Math.max(0, leftMs) }, askedAtMs: 0 }).catch(() => undefined);
  }

  /** Withdraws a push from its box, wherever that is. */
  withdraw(terminalCode: string, pushId: string, why: Withdrawing): void {
    this.withdrawHere(terminalCode, pushId, why);
    if (this.#sessions.has(terminalCode)) return;
    this.#world.place.hint({ about: 'withdraw', box: terminalCode, pushId, why });
  }

  /** Withdraws a push from its box if that is here, and ends the wait for its confirmation. */
  withdrawHere(terminalCode: string, pushId: string, why: Withdrawing): void {
    // A question that comes after this looks at the row.
    this.#recent.add(pushId);
    const result =
      why === 'timeout' ? refuse('BOX_TIMEOUT', 'the push is over') : refuse('WITHDRAWN', `the order was ${why}`);
    this.#confirmations.settle(terminalCode, pushId, result);
    this.#sessions.get(terminalCode)?.withdraw(pushId, why);
  }

  /** Settles once every call has its answer. */
  async close(): Promise<void> {
    const { place, clock } = this.#world;
    const answered = Promise.allSettled(this.#underWay);
    if (place.sharing !== undefined) await withDeadline(clock, LAST_PUSHES_MS, answered);
    this.#whereabouts.close();
    this.#confirmations.settleEverything(STOPPING);
  }

  /** Returns whether a push waits for its QR on the screen. A report that the box stored it then needs no commit. */
  awaitsScreen(terminalCode: string, pushId: string): boolean {
    return this.#world.config.confirm === 'displayed' && this.#confirmations.isAwaited(terminalCode, pushId);
  }

  /** Selects the pushes of a box for which nobody waits. Another gateway may just be asking for a new one. */
  unawaited(terminalCode: string): { terminalCode: string; except: string[]; createdBeforeMs?: number } {
    const unawaited = this.#confirmations.unawaited(terminalCode);
    return this.#world.place.sharing === undefined
      ? unawaited
      : { ...unawaited, createdBeforeMs: this.#staleBeforeMs() };
  }

  /** Fails the pushes whose gateway has ended, if this gateway does that for all, and withdraws them. */
  async failStale(): Promise<void> {
    const { clock, config, place } = this.#world;
    if (!(await place.lease('stale pushes'))) return;
    const createdBeforeMs = this.#staleBeforeMs();
    const failed = await this.#stored.store.orders.failUnfinished(clock.wallMs(), config.confirm, { createdBeforeMs });
    for (const { id, terminal_code } of failed) this.withdraw(terminal_code, id, 'timeout');
  }

  /** Returns the time by which each push that was stored before has had its deadline. */
  #staleBeforeMs(): number {
    return this.#world.clock.wallMs() - this.#world.config.confirmTimeoutMs - STALE_AFTER_MS;
  }

  /** Returns whether a question was asked a moment ago, so that the row can have changed only since then. */
  #isOfNow(askedAtMs: number): boolean {
    return Math.abs(this.#world.clock.wallMs() - askedAtMs) < ASKED_NOW_MS;
  }

  /** Shows a push to its box, and waits. With `isNew` nobody can have ended it without saying so here. */
  async #show(box: string, session: Session, show: ShowBody, isNew: boolean): Promise<Result<undefined>> {
    const { clock, config } = this.#world;
    const { confirm, confirmTimeoutMs } = config;
    const { pushId } = show;
    const sessionMs = session.ageMs();
    // From now on a resend to the box does not fail this push.
    const confirmed = this.#confirmations.wait(box, pushId);
    try {
      // The question may be late or doubled.
      const outcome = isNew ? undefined : outcomeOf(await this.#stored.store.pushes.state(pushId), confirm);
      if (outcome !== undefined) return outcome;
      if (this.#sessions.get(box) !== session) return NOT_HERE;
      this.#send(session, show, sessionMs);
      const result = await withDeadline(clock, confirmTimeoutMs, confirmed);
      return result ?? refuse('BOX_TIMEOUT', `no confirmation within ${confirmTimeoutMs} ms`);
    } finally {
      this.#confirmations.forget(box, pushId);
    }
  }

  #send(session: Session, show: ShowBody, sessionMs: number): void {
    session.send({ ...show, sessionMs, ...(this.#world.config.confirm === 'displayed' && { confirm: 'displayed' }) });
  }

  /** Marks a push as failed. Returns whether it was unfinished. If the store fails, the next resend marks it. */
  async #fail({ id, terminal_code: terminalCode }: NewPush, code: Code): Promise<boolean> {
    try {
      const nowMs = this.#world.clock.wallMs();
      const failed = await this.#stored.store.orders.failPush(id, terminalCode, code, nowMs, false);
      if (failed) this.withdraw(terminalCode, id, 'timeout');
      return failed;
    } catch (error) {
      this.withdraw(terminalCode, id, 'timeout');
      this.#sessions.get(terminalCode)?.needResend();
      throw error;
    }
  }
}

/** Remembers the newest ids. */
class RecentIds {
  readonly #ids = new Set<string>();

  /** Returns whether the id is new. */
  add(id: string): boolean {
    if (this.#ids.has(id)) return false;
    this.#ids.add(id);
    const [oldest] = this.#ids;
    if (this.#ids.size > RECENT_MAX && oldest !== undefined) this.#ids.delete(oldest);
    return true;
  }
}
