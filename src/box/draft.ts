import type { EndedHow, Link } from '../protocol/messages.ts';
import type { Entry, Order, Payment } from './entry.ts';
import { move, type StageEvent } from './machine.ts';
import { mail, withinLimit } from './outbox.ts';
import {
  type ActiveOrder,
  type At,
  activeOrder,
  type BoxState,
  type Enrolment,
  RECENT_MAX,
  REMEMBERED_MAX,
  type Refusal,
  type Send,
  type Step,
  type UnsentReport,
} from './state.ts';

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

  set(change: Partial<Omit<BoxState, 'stage'>>): void {
    this.state = { ...this.state, ...change };
  }

  /** Whether the event changed what has the screen. */
  move(event: StageEvent): boolean {
    const before = this.state;
    this.state = move(before, event);
    return this.state !== before;
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

  /** The active order is over, and the screen says so where `as` is given. */
  endActive(how: EndedHow, as?: 'expired' | 'cancelled'): void {
    const active = activeOrder(this.state.stage);
    if (active === undefined) return;
    this.reportEnd(active, how);
    this.move({ type: 'order-over', as });
  }

  reportEnd(active: ActiveOrder, how: EndedHow): void {
    if (active.displayed) this.close(active.order, how);
    else if (how === 'replaced')
      this.reject(active.order, { code: 'REPLACED', reason: 'a newer push took the screen' });
    else this.reject(active.order, { code: 'WITHDRAWN', reason: `${how} before it was on the screen` });
  }

  forget(pushId: string): void {
    this.set({ closedPushIds: remembered(this.state.closedPushIds, pushId) });
  }

  accountTold(link: Link): void {
    this.writes.push({ kind: 'link', link, toldAtMs: this.at.wallMs });
    this.set({ toldLink: link });
  }
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
  if ('untilMs' in stage) times.push(stage.untilMs);
  if (active !== undefined) {
    const secondsLeft = stage.kind === 'order' ? Math.ceil((active.deadlineMs - nowMs) / 1000) : 1;
    times.push(active.deadlineMs - Math.max(0, secondsLeft - 1) * 1000);
  }
  return times.length === 0 ? undefined : Math.min(...times);
}
