import { type BoxState, IN_FLIGHT_MAX, RESEND_MS, type Send, UNSENT_MAX, type UnsentReport } from './state.ts';

/** What a change of the reports that are owed leads to. */
interface Mailed {
  state: BoxState;
  sends: readonly Send[];
}

/** Sends what may go, oldest first: as many as `IN_FLIGHT_MAX` are on their way at a time (PROTOCOL.md, clause MSG-6). */
export function mail(state: BoxState): Mailed {
  const free = IN_FLIGHT_MAX - state.inFlight.length;
  if (state.connection !== 'registered' || free === 0) return { state, sends: [] };
  const next = state.unsent.filter(({ id }) => !state.inFlight.includes(id)).slice(0, free);
  if (next.length === 0) return { state, sends: [] };
  const inFlight = [...state.inFlight, ...next.map(({ id }) => id)];
  return { state: { ...state, inFlight, resendAtMs: state.resendAtMs ?? state.nowMs + RESEND_MS }, sends: next };
}

/** What was sent is forgotten as sent: another session begins, or its acknowledgements stay away. */
export function unmail(state: BoxState): BoxState {
  return { ...state, inFlight: [], resendAtMs: undefined };
}

/** The gateway has stored these reports. */
export function delivered(state: BoxState, ids: readonly string[]): BoxState {
  const inFlight = state.inFlight.filter((id) => !ids.includes(id));
  return {
    ...state,
    unsent: state.unsent.filter(({ id }) => !ids.includes(id)),
    inFlight,
    // Acknowledgements come: what is still under way has its time from here.
    resendAtMs: inFlight.length === 0 ? undefined : state.nowMs + RESEND_MS,
  };
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
