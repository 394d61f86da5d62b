import { calendarMs, restoredCalendar, timeIn } from './calendar.ts';
import { type Draft, mergeIds } from './draft.ts';
import type { Entry } from './entry.ts';
import { move } from './machine.ts';
import { replay } from './memory.ts';
import { withinLimit } from './outbox.ts';
import { leftMs } from './push.ts';
import { type At, type BoxConfig, type BoxState, IDLE, isSameAccount, RECENT_MAX, UNCONFIRMED_MAX } from './state.ts';

/** Returns the state of a box without a journal. */
export function initialState(config: BoxConfig, at: At): BoxState {
  return {
    config,
    nowMs: at.monotonicMs,
    connection: 'none',
    pictures: {},
    account: undefined,
    announcedAccount: undefined,
    enrolment: undefined,
    stage: IDLE,
    refusal: undefined,
    faults: { display: undefined, storage: undefined },
    recentPayments: [],
    announced: [],
    closedPushIds: [],
    journalIntact: false,
    firstWelcomeMs: undefined,
    sandbox: false,
    sandboxMark: false,
    unsent: [],
    inFlight: [],
    resendAtMs: undefined,
    unconfirmedPayments: [],
    undatedOrder: undefined,
    calendar: undefined,
    clock: undefined,
    undatedPaymentIds: [],
  };
}

/**
 * Returns the state after a restart (PROTOCOL.md, clauses AGT-5, AGT-8 and AGT-10). An order that was on the screen
 * returns if it has not expired, and the box shows a payment that no display has confirmed. An order waits for the
 * gateway's time in the welcome if the box cannot date it, or if it seems over or not yet begun. `intact`: the whole
 * journal was readable (clause AGT-11). `isTimeRight`: a time server has set the calendar clock since the machine
 * started.
 */
export function restore(
  config: BoxConfig,
  { entries, intact }: { entries: readonly Entry[]; intact: boolean },
  at: At,
  isTimeRight: boolean,
): BoxState {
  const { shown, ...memory } = replay(entries);
  const { clock, undatedPaymentIds: undated } = timeIn(entries);
  const calendar = restoredCalendar(clock, config, at, isTimeRight);
  const known = memory.recentPayments.map((it) => it.transactionId);
  const time = { clock, calendar, undatedPaymentIds: calendar === undefined ? known : undated };
  const fresh = { ...initialState(config, at), ...memory, ...time, journalIntact: intact };
  const nowMs = calendarMs(fresh, at.monotonicMs);
  const left = shown === undefined || nowMs === undefined ? undefined : leftMs(shown, nowMs);
  if (shown === undefined || left === undefined) {
    return move({ ...fresh, undatedOrder: shown }, { type: 'restart', active: undefined });
  }
  const active = { order: shown, deadlineMs: at.monotonicMs + left, displayed: true, restored: true };
  return move(fresh, { type: 'restart', active });
}

/**
 * Adds a journal that was unreadable at the start. The box's own knowledge is newer, and the journal's order is over.
 */
export function mergeJournal(draft: Draft, entries: Entry[], intact: boolean): void {
  const { shown, ...before } = replay(entries);
  const { announced, closedPushIds, unsent, recentPayments, unconfirmedPayments, announcedAccount } = draft.state;
  const { calendar, undatedPaymentIds } = draft.state;
  const isDated = calendar?.isOwn === false;
  const known = new Set([...announced, ...unsent.map(({ id }) => id)]);
  draft.set({
    journalIntact: intact,
    undatedPaymentIds: isDated ? [] : [...undatedPaymentIds, ...before.recentPayments.map((it) => it.transactionId)],
    announced: mergeIds(before.announced, announced),
    closedPushIds: mergeIds(before.closedPushIds, closedPushIds),
    unsent: withinLimit([...before.unsent.filter(({ id }) => !known.has(id)), ...unsent]),
    recentPayments: [...recentPayments, ...before.recentPayments.filter((it) => !known.has(it.transactionId))].slice(
      0,
      RECENT_MAX,
    ),
    unconfirmedPayments: [
      ...before.unconfirmedPayments.filter((it) => !known.has(it.transactionId)),
      ...unconfirmedPayments,
    ].slice(-UNCONFIRMED_MAX),
  });
  // The box writes it again, after the account that it believed to be its first one.
  if (before.announcedAccount !== undefined && !isSameAccount(before.announcedAccount, announcedAccount))
    draft.announceAccount(before.announcedAccount);
  if (draft.state.firstWelcomeMs === undefined) draft.set({ sandboxMark: before.sandboxMark });
  else if (before.sandboxMark !== draft.state.sandboxMark) draft.mark(draft.state.sandboxMark);
  if (shown !== undefined && !closedPushIds.includes(shown.pushId)) draft.endPush(shown, 'interrupted');
  draft.dropForeign();
  draft.flush();
  draft.move({ type: 'settle' });
}
