import type { Draft } from './draft.ts';
import type { ClockEntry, Entry } from './entry.ts';
import { type At, type BoxConfig, type BoxState, type Calendar, RECENT_MAX } from './state.ts';

/*
 * A box has no clock of its own that is right: its calendar clock may have stood still while it had no power. The gateway
 * names the time in each welcome, and from then on the box counts by its monotonic clock. The journal keeps the readings of
 * the clocks of that moment, so that a restart of the agent alone knows the time too.
 */

/** A difference that is not written again: it is what a slow answer and a drifting clock make. */
const TOLERANCE_MS = 1_000;

/** The calendar time, in milliseconds since 1970; undefined while the box does not know it. */
export function calendarMs({ calendar }: Pick<BoxState, 'calendar'>, monotonicMs: number): number | undefined {
  return calendar === undefined ? undefined : monotonicMs + calendar.aheadMs;
}

/** The calendar time that the gateway or a time server told; undefined while the box has only its own clock. */
export function toldMs({ calendar }: Pick<BoxState, 'calendar'>, monotonicMs: number): number | undefined {
  return calendar?.isOwn === false ? monotonicMs + calendar.aheadMs : undefined;
}

/** Takes over the time of a welcome. `isOwn`: the peer names no time, and this is the box's own calendar clock. */
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

/** The time, as far as a journal knows it. */
export interface JournalTime {
  clock: ClockEntry | undefined;
  /** The newest payments of before a boot in which nobody told the time, at most `RECENT_MAX`: their age is unknown. */
  undatedPaymentIds: readonly string[];
}

/** Reads what a journal knows of the time. */
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

/** Whether a journal knows the time in this boot of the machine. */
export function isOfBoot(entries: readonly Entry[], bootId: string | undefined): boolean {
  return timeIn(entries).clock?.bootId === bootId;
}

/**
 * The calendar at a start: by what the clocks showed earlier in this boot of the machine, or by the calendar clock where
 * `isTimeRight`. Of two clocks the one that went further counts: one may have been set back, the other does not count
 * while a machine sleeps, and a QR must not stay for too long.
 */
export function restoredCalendar(
  before: ClockEntry | undefined,
  { boot }: Pick<BoxConfig, 'boot'>,
  { monotonicMs, wallMs }: At,
  isTimeRight: boolean,
): Calendar | undefined {
  if (before !== undefined && boot !== undefined && before.bootId === boot.id) {
    const passedMs = Math.max(monotonicMs + boot.offsetMs - before.bootMs, wallMs - before.wallMs);
    if (passedMs >= 0) return { aheadMs: before.gatewayMs + passedMs - monotonicMs, isOwn: before.isOwn };
  }
  return isTimeRight ? { aheadMs: wallMs - monotonicMs, isOwn: false } : undefined;
}
