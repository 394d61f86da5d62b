import type { Entry, Order, Payment } from './entry.ts';
import {
  type ActiveOrder,
  type At,
  activeOrder,
  type BoxState,
  type Notice,
  RECENT_MAX,
  REMEMBERED_MAX,
  type Refusal,
  type Send,
  type Step,
  UNSENT_MAX,
  type UnsentReport,
} from './state.ts';

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

  /** A report that is owed until acknowledged; sent now if there is a session, and on every welcome. */
  owe(report: UnsentReport): void {
    this.set({ unsent: withinLimit([...this.state.unsent, report]) });
    if (this.state.connection === 'registered') this.sends.push(report);
  }

  close(order: Order, how: 'expired' | 'replaced' | 'withdrawn' | 'dismissed'): void {
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

  forget(pushId: string): void {
    this.set({ closedPushIds: remembered(this.state.closedPushIds, pushId) });
  }

  notice(notice: Exclude<Notice, { kind: 'too-dense' }>, resume?: ActiveOrder): void {
    const { paidHoldMs, endedHoldMs } = this.state.config;
    this.tell(notice, notice.kind === 'paid' ? paidHoldMs : endedHoldMs, resume);
  }

  tell(notice: Notice, holdMs: number, resume?: ActiveOrder): void {
    this.set({ stage: { kind: 'notice', notice, untilMs: this.at.monotonicMs + holdMs, resume } });
  }
}

/** `ids` with `id` as the newest, bounded. */
export function remembered(ids: readonly string[], id: string): readonly string[] {
  return ids.includes(id) ? ids : [...ids, id].slice(-REMEMBERED_MAX);
}

/** The newest payments, `payment` first. */
export function recent(payments: readonly Payment[], payment: Payment): readonly Payment[] {
  return [payment, ...payments].slice(0, RECENT_MAX);
}

/** The reports that may be owed: where there are too many, the oldest `ended` go first, `paid` only when no other is left. */
export function withinLimit(reports: readonly UnsentReport[]): readonly UnsentReport[] {
  const excess = reports.length - UNSENT_MAX;
  if (excess <= 0) return reports;
  const ended = reports.filter((report) => report.type === 'ended');
  const dropped = new Set<UnsentReport>(ended.slice(0, excess));
  const kept = reports.filter((report) => !dropped.has(report));
  return kept.slice(Math.max(0, kept.length - UNSENT_MAX));
}

/** When time alone changes what the box shows: the next countdown second, a deadline, the end of a notice. */
function wakeAtMs({ stage, nowMs }: BoxState): number | undefined {
  const active = activeOrder(stage);
  if (stage.kind === 'notice') return Math.min(stage.untilMs, active?.deadlineMs ?? Number.POSITIVE_INFINITY);
  if (active === undefined) return undefined;
  const secondsLeft = Math.ceil((active.deadlineMs - nowMs) / 1000);
  return active.deadlineMs - Math.max(0, secondsLeft - 1) * 1000;
}
