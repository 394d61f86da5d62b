import { type Draft, united } from './draft.ts';
import type { Entry } from './entry.ts';
import { IDLE, move } from './machine.ts';
import { recall } from './memory.ts';
import { withinLimit } from './outbox.ts';
import { leftMs } from './push.ts';
import { type At, type BoxConfig, type BoxState, isSameAccount, RECENT_MAX, UNTOLD_MAX } from './state.ts';

/** A box that has just been switched on and remembers nothing. */
export function initialState(config: BoxConfig, at: At): BoxState {
  return {
    config,
    nowMs: at.monotonicMs,
    connection: 'none',
    link: undefined,
    toldLink: undefined,
    enrolment: undefined,
    stage: IDLE,
    refusal: undefined,
    faults: { display: undefined, storage: undefined },
    recentPayments: [],
    announced: [],
    closedPushIds: [],
    whole: false,
    firstWelcomeMs: undefined,
    unsent: [],
    inFlight: [],
    resendAtMs: undefined,
    untold: [],
    held: undefined,
  };
}

/**
 * The state that the journal tells of (PROTOCOL.md, clauses AGT-5, AGT-8 and AGT-10). An order that was on the screen is
 * there again if it has not expired, and a payment whose screen was not seen is shown. Calendar time is the only time
 * that a restart leaves, and a device may have lost it: an order that it says is over, or not yet begun, waits for the
 * gateway's time in the welcome. `whole`: the journal of earlier lives could be read (clause AGT-11).
 */
export function restore(
  config: BoxConfig,
  { entries, whole }: { entries: readonly Entry[]; whole: boolean },
  at: At,
): BoxState {
  const { shown, ...memory } = recall(entries);
  const fresh = { ...initialState(config, at), ...memory, whole };
  const left = shown === undefined ? undefined : leftMs(shown, at.wallMs);
  if (shown === undefined || left === undefined) {
    return move({ ...fresh, held: shown }, { type: 'restart', active: undefined });
  }
  const active = { order: shown, deadlineMs: at.monotonicMs + left, displayed: true, restored: true };
  return move(fresh, { type: 'restart', active });
}

/** What this life of the box knows is newer; an order that was on the screen before it is over. */
export function remember(draft: Draft, entries: Entry[], whole: boolean): void {
  const { shown, ...before } = recall(entries);
  const { announced, closedPushIds, unsent, recentPayments, untold, toldLink } = draft.state;
  const known = new Set([...announced, ...unsent.map(({ id }) => id)]);
  draft.set({
    whole,
    announced: united(before.announced, announced),
    closedPushIds: united(before.closedPushIds, closedPushIds),
    unsent: withinLimit([...before.unsent.filter(({ id }) => !known.has(id)), ...unsent]),
    recentPayments: [...recentPayments, ...before.recentPayments.filter((it) => !known.has(it.transactionId))].slice(
      0,
      RECENT_MAX,
    ),
    untold: [...before.untold.filter((it) => !known.has(it.transactionId)), ...untold].slice(-UNTOLD_MAX),
  });
  // Written anew, behind what this life took for the first account while it could not know better.
  if (before.toldLink !== undefined && !isSameAccount(before.toldLink, toldLink)) draft.accountTold(before.toldLink);
  if (shown !== undefined && !closedPushIds.includes(shown.pushId)) draft.close(shown, 'interrupted');
  draft.mail();
  draft.move({ type: 'settle' });
}
