import { type BoxState, IN_FLIGHT_MAX, RESEND_MS, type Send, UNSENT_MAX, type UnsentReport } from './state.ts';

interface Flushed {
  state: BoxState;
  sends: readonly Send[];
}

/** Sends waiting reports, oldest first, at most `IN_FLIGHT_MAX` at a time (PROTOCOL.md, clause MSG-6). */
export function flush(state: BoxState): Flushed {
  const free = IN_FLIGHT_MAX - state.inFlight.length;
  if (state.connection !== 'registered' || free === 0) return { state, sends: [] };
  const next = state.unsent.filter(({ id }) => !state.inFlight.includes(id)).slice(0, free);
  if (next.length === 0) return { state, sends: [] };
  const inFlight = [...state.inFlight, ...next.map(({ id }) => id)];
  return { state: { ...state, inFlight, resendAtMs: state.resendAtMs ?? state.nowMs + RESEND_MS }, sends: next };
}

/** Makes all reports wait again, because a new session begins or acknowledgements do not arrive. */
export function resetInFlight(state: BoxState): BoxState {
  return { ...state, inFlight: [], resendAtMs: undefined };
}

/** Removes the reports that the gateway has stored. */
export function acknowledge(state: BoxState, ids: readonly string[]): BoxState {
  const inFlight = state.inFlight.filter((id) => !ids.includes(id));
  return {
    ...state,
    unsent: state.unsent.filter(({ id }) => !ids.includes(id)),
    inFlight,
    // Acknowledgements are arriving, so the other reports have their full time again.
    resendAtMs: inFlight.length === 0 ? undefined : state.nowMs + RESEND_MS,
  };
}

/** Returns at most `UNSENT_MAX` reports. It drops the oldest `ended` first, and `paid` only when no `ended` is left. */
export function withinLimit(reports: readonly UnsentReport[]): readonly UnsentReport[] {
  const excess = reports.length - UNSENT_MAX;
  if (excess <= 0) return reports;
  const ended = reports.filter((report) => report.type === 'ended');
  const dropped = new Set<UnsentReport>(ended.slice(0, excess));
  const kept = reports.filter((report) => !dropped.has(report));
  return kept.slice(Math.max(0, kept.length - UNSENT_MAX));
}
