import type { EndedHow, Link } from '../protocol/messages.ts';
import type { Entry, Order, Payment } from './entry.ts';
import { mail, withinLimit } from './outbox.ts';
import {
  type ActiveOrder,
  type At,
  activeOrder,
  type BoxConfig,
  type BoxState,
  type Enrolment,
  isSameAccount,
  type Notice,
  RECENT_MAX,
  REMEMBERED_MAX,
  type Refusal,
  type Send,
  type Step,
  type UnsentReport,
} from './state.ts';

/** How long a payment is shown when another one, or an order, waits for the screen. */
const WAITED_FOR_HOLD_MS = 3_000;
/** For so long at least people are told of another account. */
const ACCOUNT_HOLD_MIN_MS = 5_000;
const MINUTE_MS = 60_000;

/** The changes of one event while they are collected. */
export class Draft {
  state: BoxState;
  readonly at: At;
  readonly writes: Entry[];
  readonly sends: Send[];
  readonly announcements: Payment[];

  constructor(start: Omit<Step, 'wakeAtMs'>, at: At) {
    this.state = start.state;
    this.writes = start.writes;
    this.sends = start.sends;
    this.announcements = start.announcements;
    this.at = at;
  }

  set(change: Partial<BoxState>): void {
    this.state = { ...this.state, ...change };
  }

  step(): Step {
    const { state, writes, sends, announcements } = this;
    return { state, writes, sends, announcements, wakeAtMs: wakeAtMs(state) };
  }

  /** A report that is owed until acknowledged; sent in its turn, as soon as there is a session. */
  owe(report: UnsentReport): void {
    const unsent = withinLimit([...this.state.unsent, report]);
    const ids = new Set(unsent.map(({ id }) => id));
    this.set({ unsent, inFlight: this.state.inFlight.filter((id) => ids.has(id)) });
    this.mail();
  }

  mail(): void {
    const { state, sends } = mail(this.state);
    this.state = state;
    this.sends.push(...sends);
  }

  close(order: Pick<Order, 'pushId' | 'orderId'>, how: EndedHow): void {
    this.writes.push({ kind: 'ended', pushId: order.pushId, orderId: order.orderId, how });
    this.forget(order.pushId);
    this.owe({ type: 'ended', id: order.pushId, pushId: order.pushId, orderId: order.orderId, how });
  }

  /** A push that never was on the screen is refused instead of ended: its partner still waits for the answer. */
  reject(order: Order, refusal: Refusal): void {
    this.writes.push({ kind: 'refused', pushId: order.pushId });
    this.forget(order.pushId);
    this.sends.push({ type: 'rejected', pushId: order.pushId, ...refusal });
  }

  endActive(active: ActiveOrder, how: EndedHow): void {
    if (active.displayed) this.close(active.order, how);
    else if (how === 'replaced')
      this.reject(active.order, { code: 'REPLACED', reason: 'a newer push took the screen' });
    else this.reject(active.order, { code: 'WITHDRAWN', reason: `${how} before it was on the screen` });
  }

  forget(pushId: string): void {
    this.set({ closedPushIds: remembered(this.state.closedPushIds, pushId) });
  }

  notice(notice: Exclude<Notice, { kind: 'too-dense' }>, resume?: ActiveOrder): void {
    const { config } = this.state;
    const holdMs = notice.kind === 'paid' ? paidHoldMs(config, resume !== undefined) : config.endedHoldMs;
    // However short the others are: it comes again until it was told.
    this.tell(notice, notice.kind === 'account' ? Math.max(holdMs, ACCOUNT_HOLD_MIN_MS) : holdMs, resume);
  }

  tell(notice: Notice, holdMs: number, resume?: ActiveOrder): void {
    const sinceMs = this.at.monotonicMs;
    this.set({ stage: { kind: 'notice', notice, sinceMs, untilMs: sinceMs + holdMs, resume } });
  }

  /** The order that has the screen, or would have it back, is over; a notice that has the screen stays. */
  leave(notice: { kind: 'cancelled' | 'expired'; order: Order } | undefined): void {
    const { stage } = this.state;
    if (stage.kind === 'notice') this.set({ stage: { ...stage, resume: undefined } });
    else if (notice !== undefined) this.notice(notice);
    else this.rest();
  }

  /**
   * Nothing has the screen: a payment that nobody has seen takes it, else it is quiet. `seen`: the payment that had it
   * until here; where no display has confirmed that one either, only later ones follow, or it would come back for ever.
   * `resume`: the order that has the screen after these; at once where they are many.
   */
  rest(seen?: Payment, resume?: ActiveOrder): void {
    const { config, untold, faults, link } = this.state;
    const unconfirmed = untold.findIndex(({ transactionId }) => transactionId === seen?.transactionId);
    const payment = untold[unconfirmed + 1];
    const isQrFirst = resume !== undefined && untold.length > RECENT_MAX;
    if (payment === undefined || faults.display !== undefined || isQrFirst) {
      if (resume === undefined) this.beQuiet();
      else this.set({ stage: { kind: 'order', active: resume } });
      return;
    }
    const isWaitedFor = untold.length > 1 || resume !== undefined;
    this.tell({ kind: 'paid', payment, holder: link ?? null }, paidHoldMs(config, isWaitedFor), resume);
  }

  /** No order and no payment has the screen: an account that people have not been told of takes it (clause AGT-13). */
  beQuiet(): void {
    const { link, toldLink, faults } = this.state;
    const isUntold = link && toldLink && !isSameAccount(link, toldLink);
    if (isUntold && faults.display === undefined) {
      this.notice({ kind: 'account', holder: link, previous: toldLink, drawn: false });
    } else {
      this.set({ stage: { kind: 'quiet' } });
    }
  }

  accountTold(link: Link): void {
    this.writes.push({ kind: 'link', link, toldAtMs: this.at.wallMs });
    this.set({ toldLink: link });
  }

  /**
   * Gives a payment the screen. One that has it keeps it until people can have read it, and this one waits in `untold`
   * for its turn (PROTOCOL.md, clause AGT-12).
   */
  showPaid(payment: Payment, holder: Link | null, resume: ActiveOrder | undefined): void {
    const { stage } = this.state;
    const readMs = stage.kind === 'notice' && stage.notice.kind === 'paid' ? stage.sinceMs + WAITED_FOR_HOLD_MS : 0;
    if (stage.kind !== 'notice' || readMs <= this.at.monotonicMs)
      this.notice({ kind: 'paid', payment, holder }, resume);
    else this.set({ stage: { ...stage, untilMs: Math.min(stage.untilMs, readMs), resume } });
  }
}

function paidHoldMs(config: BoxConfig, isWaitedFor: boolean): number {
  return isWaitedFor ? Math.min(config.paidHoldMs, WAITED_FOR_HOLD_MS) : config.paidHoldMs;
}

/** `ids` with `id` as the newest, bounded. */
export function remembered(ids: readonly string[], id: string): readonly string[] {
  return ids.includes(id) ? ids : [...ids, id].slice(-REMEMBERED_MAX);
}

/** Ids of two times, the newer ones last, bounded. */
export function united(older: readonly string[], newer: readonly string[]): readonly string[] {
  return [...older.filter((id) => !newer.includes(id)), ...newer].slice(-REMEMBERED_MAX);
}

/** The newest payments, `payment` first. */
export function recent(payments: readonly Payment[], payment: Payment): readonly Payment[] {
  return [payment, ...payments].slice(0, RECENT_MAX);
}

/** Whole minutes until the code of an enrolment is spent, at least 1. */
export function minutesLeft({ deadlineMs }: Enrolment, nowMs: number): number {
  return Math.max(1, Math.ceil((deadlineMs - nowMs) / MINUTE_MS));
}

/** When time alone changes something: the next countdown second or minute, a deadline, the end of a notice, a report sent again. */
function wakeAtMs({ stage, enrolment, nowMs, resendAtMs }: BoxState): number | undefined {
  const times: number[] = resendAtMs === undefined ? [] : [resendAtMs];
  if (enrolment !== undefined) times.push(enrolment.deadlineMs - (minutesLeft(enrolment, nowMs) - 1) * MINUTE_MS);
  const active = activeOrder(stage);
  if (stage.kind === 'notice') times.push(stage.untilMs);
  if (active !== undefined) {
    const secondsLeft = stage.kind === 'order' ? Math.ceil((active.deadlineMs - nowMs) / 1000) : 1;
    times.push(active.deadlineMs - Math.max(0, secondsLeft - 1) * 1000);
  }
  return times.length === 0 ? undefined : Math.min(...times);
}
