import type { EndedHow, LinkedAccount } from '../../protocol/messages.ts';
import type { Entry, Order, Payment } from './entry.ts';
import { move, type StageEvent } from './machine.ts';
import { flush, withinLimit } from './outbox.ts';
import {
  type ActiveOrder,
  type At,
  activeOrder,
  type BoxState,
  type Changes,
  type Enrolment,
  RECENT_MAX,
  REMEMBERED_MAX,
  type Refusal,
  type Send,
  type Step,
  type UnsentReport,
} from './state.ts';

const MINUTE_MS = 60_000;

/** Collects the changes of one event. */
export class Draft {
  state: BoxState;
  readonly at: At;
  readonly writes: Entry[];
  readonly sends: Send[];
  readonly announcements: Payment[];
  readonly repeats: Payment[];

  constructor(start: Changes, at: At) {
    this.state = start.state;
    this.writes = start.writes;
    this.sends = start.sends;
    this.announcements = start.announcements;
    this.repeats = start.repeats;
    this.at = at;
  }

  /** Changes the state except its stage, which only the table of `machine.ts` moves. */
  set(change: Partial<Omit<BoxState, 'stage'>>): void {
    this.state = { ...this.state, ...change };
  }

  /** Moves the stage and returns whether the event changed it. */
  move(event: StageEvent): boolean {
    const before = this.state;
    this.state = move(before, event);
    return this.state !== before;
  }

  step(): Step {
    const { state, writes, sends, announcements, repeats } = this;
    return { state, writes, sends, announcements, repeats, wakeAtMs: wakeAtMs(state) };
  }

  /** Enqueues a report. The box sends it in order, and repeats it until the gateway acknowledges it. */
  enqueue(report: UnsentReport): void {
    const unsent = withinLimit([...this.state.unsent, report]);
    const ids = new Set(unsent.map(({ id }) => id));
    this.set({ unsent, inFlight: this.state.inFlight.filter((id) => ids.has(id)) });
    this.flush();
  }

  flush(): void {
    const { state, sends } = flush(this.state);
    this.state = state;
    this.sends.push(...sends);
  }

  endPush(order: Order, how: EndedHow): void {
    this.writes.push({ kind: 'ended', pushId: order.pushId, orderId: order.orderId, how });
    this.markClosed(order.pushId);
    this.enqueue({ type: 'ended', id: order.pushId, pushId: order.pushId, orderId: order.orderId, how });
  }

  /** Refuses a push that was never on the screen. Its partner still waits for the answer. */
  reject(order: Order, refusal: Refusal): void {
    this.writes.push({ kind: 'refused', pushId: order.pushId });
    this.markClosed(order.pushId);
    this.sends.push({ type: 'rejected', pushId: order.pushId, ...refusal });
  }

  /** Ends the active order. With `as` the screen says how it ended. */
  endActive(how: EndedHow, as?: 'expired' | 'cancelled'): void {
    const active = activeOrder(this.state.stage);
    if (active === undefined) return;
    this.reportEnd(active, how);
    this.move({ type: 'order-over', as });
  }

  /** Reports the end of a push that was on the screen, and refuses one that was not. */
  reportEnd(active: ActiveOrder, how: EndedHow): void {
    if (active.displayed) this.endPush(active.order, how);
    else if (how === 'replaced')
      this.reject(active.order, { code: 'REPLACED', reason: 'a newer push took the screen' });
    else this.reject(active.order, { code: 'WITHDRAWN', reason: `${how} before it was on the screen` });
  }

  markClosed(pushId: string): void {
    this.set({ closedPushIds: withId(this.state.closedPushIds, pushId) });
  }

  /** Sets whether screens say that the gateway is a sandbox, from now on and after a restart (clause AGT-15). */
  mark(shown: boolean): void {
    this.writes.push({ kind: 'mark', shown, changedAtMs: this.at.wallMs });
    this.set({ sandboxMark: shown });
  }

  /**
   * Drops the payments that the present owner of the box must not see: tests at a gateway that takes money, and those
   * to another account than the linked one (clause AGT-16). They still count as announced. A test loses the screen too.
   */
  dropForeign(): void {
    const { account, sandbox, firstWelcomeMs, recentPayments, unconfirmedPayments, stage } = this.state;
    if (firstWelcomeMs === undefined) return;
    const isTest = ({ test = false }: Payment) => test && !sandbox;
    const own = account?.bankAccount ?? '';
    const isForeign = (it: Payment) => isTest(it) || (own !== '' && (it.bankAccount || own) !== own);
    const dropped = new Set(
      [...recentPayments, ...unconfirmedPayments].filter(isForeign).map((it) => it.transactionId),
    );
    const isOnScreen =
      (stage.kind === 'paid' && isTest(stage.payment)) || (stage.kind === 'repeat' && isForeign(stage.payment));
    for (const transactionId of dropped) this.writes.push({ kind: 'payment-dropped', transactionId });
    if (dropped.size > 0) {
      const isKept = (it: Payment) => !dropped.has(it.transactionId);
      this.set({
        recentPayments: recentPayments.filter(isKept),
        unconfirmedPayments: unconfirmedPayments.filter(isKept),
      });
    }
    if (isOnScreen || (stage.kind === 'history' && dropped.size > 0)) this.move({ type: 'finish' });
  }

  announceAccount(account: LinkedAccount): void {
    this.writes.push({ kind: 'account', account, announcedAtMs: this.at.wallMs });
    this.set({ announcedAccount: account });
  }
}

/** Returns `ids` with `id` as the newest, limited in length. */
export function withId(ids: readonly string[], id: string): readonly string[] {
  return ids.includes(id) ? ids : [...ids, id].slice(-REMEMBERED_MAX);
}

/** Merges both lists of ids without repetitions, the newer ones last, limited in length. */
export function mergeIds(older: readonly string[], newer: readonly string[]): readonly string[] {
  return [...older.filter((id) => !newer.includes(id)), ...newer].slice(-REMEMBERED_MAX);
}

/** Returns the newest payments, `payment` first. */
export function withNewest(payments: readonly Payment[], payment: Payment): readonly Payment[] {
  return [payment, ...payments].slice(0, RECENT_MAX);
}

/** Returns the whole minutes until the code of an enrolment expires, at least 1. */
export function minutesLeft({ deadlineMs }: Enrolment, nowMs: number): number {
  return Math.max(1, Math.ceil((deadlineMs - nowMs) / MINUTE_MS));
}

/**
 * Returns when time alone changes something: a countdown, a deadline, the end of a temporary screen, a repeated report.
 */
function wakeAtMs({ stage, enrolment, nowMs, resendAtMs }: BoxState): number | undefined {
  const times: number[] = resendAtMs === undefined ? [] : [resendAtMs];
  if (enrolment !== undefined) times.push(enrolment.deadlineMs - (minutesLeft(enrolment, nowMs) - 1) * MINUTE_MS);
  const active = activeOrder(stage);
  if ('untilMs' in stage) times.push(stage.untilMs);
  if (active !== undefined) {
    const secondsLeft = stage.kind === 'order' ? Math.ceil((active.deadlineMs - nowMs) / 1000) : 1;
    times.push(active.deadlineMs - Math.max(0, secondsLeft - 1) * 1000);
  }
  return times.length === 0 ? undefined : Math.min(...times);
}
