import type { Entry } from './entry.ts';
import { IDLE, move } from './machine.ts';
import { recall } from './memory.ts';
import { leftMs } from './order.ts';
import type { At, BoxConfig, BoxState } from './state.ts';

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
