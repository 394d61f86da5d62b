import type { Draft } from './draft.ts';
import type { ClockEntry, Entry } from './entry.ts';
import { type At, type BoxConfig, type BoxState, type Calendar, RECENT_MAX } from './state.ts';

/*
 * A box cannot trust its own calendar clock, which may have stopped while the box had no power. The gateway sends the
 * time in each welcome, and from then on the box counts by its monotonic clock. The journal stores both clock readings
 * of that moment, so a restart of the agent alone still knows the time.
 */

/** The box does not write a smaller difference again. Slow answers and clock drift cause such differences. */
const TOLERANCE_MS = 1_000;

/** Returns the calendar time, in milliseconds since 1970; undefined while the box does not know it. */
export function calendarMs({ calendar }: BoxState, monotonicMs: number): number | undefined {
  return calendar === undefined ? undefined : monotonicMs + calendar.aheadMs;
}

/** Returns the calendar time of the gateway or a time server; undefined while the box has only its own clock. */
export function toldMs({ calendar }: BoxState, monotonicMs: number): number | undefined {
  return calendar?.isOwn === false ? monotonicMs + calendar.aheadMs : undefined;
}

/** Adopts the time of a welcome. With `isOwn` the peer sent no time, and this is the box's own calendar clock. */
export function learnTime(draft: Draft, gatewayMs: number, isOwn: boolean): void {
  const { config, clock } = draft.state;
  draft.set({ calendar: { aheadMs: gatewayMs - draft.state.nowMs, isOwn } });
  if (!isOwn) draft.set({ undatedPaymentIds: [] });
  if (config.boot === undefined) return;
  const { monotonicMs, wallMs } = draft.at;
  const seen = {
    kind: 'clock',
    bootId: config.boot.id,
    bootMs: Math.floor(monotonicMs + config.boot.offsetMs),
    wallMs: Math.floor(wallMs),
    gatewayMs: Math.floor(gatewayMs),
    isOwn,
  } as const satisfies ClockEntry;
  if (clock !== undefined && isSame(clock, seen)) return;
  draft.writes.push(seen);
  draft.set({ clock: seen });
}

function isSame(before: ClockEntry, after: ClockEntry): boolean {
  if (before.bootId !== after.bootId || before.isOwn !== after.isOwn) return false;
  const passedMs = after.gatewayMs - before.gatewayMs;
  const isClose = (otherMs: number) => Math.abs(passedMs - otherMs) < TOLERANCE_MS;
  return isClose(after.bootMs - before.bootMs) && isClose(after.wallMs - before.wallMs);
}

/** Holds everything that a journal knows about the time. */
export interface JournalTime {
  clock: ClockEntry | undefined;
  /** The newest payments from boots without a trusted time, at most `RECENT_MAX`. Their age is unknown. */
  undatedPaymentIds: readonly string[];
}

/** Reads from journal entries everything that they say about the time. */
export function timeIn(entries: readonly Entry[]): JournalTime {
  let time: JournalTime = { clock: undefined, undatedPaymentIds: [] };
  const paymentIds: string[] = [];
  for (const entry of entries) {
    if (entry.kind === 'payment') paymentIds.push(entry.payment.transactionId);
    if (entry.kind !== 'clock') continue;
    const isNewBoot = entry.bootId !== time.clock?.bootId;
    const undatedPaymentIds = isNewBoot ? paymentIds.slice(-RECENT_MAX) : time.undatedPaymentIds;
    time = { clock: entry, undatedPaymentIds: entry.isOwn ? undatedPaymentIds : [] };
  }
  return time;
}

/** Returns whether a journal knows the time in this boot of the machine. */
export function isOfBoot(entries: readonly Entry[], bootId: string | undefined): boolean {
  return timeIn(entries).clock?.bootId === bootId;
}

/**
 * Returns the calendar at a start. It counts on from clock readings earlier in this boot, or uses the calendar clock if
 * `isTimeRight`. Of two clocks the later time counts: a person may have set one back, and the other stops while a
 * machine sleeps. A QR must never stay too long.
 */
export function restoredCalendar(
  before: ClockEntry | undefined,
  { boot }: BoxConfig,
  { monotonicMs, wallMs }: At,
  isTimeRight: boolean,
): Calendar | undefined {
  if (before !== undefined && boot !== undefined && before.bootId === boot.id) {
    const passedMs = Math.max(monotonicMs + boot.offsetMs - before.bootMs, wallMs - before.wallMs);
    if (passedMs >= 0) return { aheadMs: before.gatewayMs + passedMs - monotonicMs, isOwn: before.isOwn };
  }
  return isTimeRight ? { aheadMs: wallMs - monotonicMs, isOwn: false } : undefined;
}
