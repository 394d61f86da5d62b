import { type Clock, systemClock } from '../../src/lib/clock.ts';
import { PROGRAMS, without } from '../support/programs.ts';

export const { missing, note } = without(PROGRAMS.postgres);
export const HOUR_MS = 3_600_000;
/** The token of a call, and the times in it. */
export const timesOf = (token: string) =>
  JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as { iat: number; exp: number };

/** A calendar that a test sets; durations are those of the machine. */
export function settable(aheadMs = 0) {
  let ahead = aheadMs;
  const clock: Clock = { ...systemClock, wallMs: () => systemClock.wallMs() + ahead };
  const setAhead = (ms: number) => {
    ahead = ms;
  };
  return { clock, setAhead };
}

export interface Health {
  status: string;
  clock?: { aheadMs: number; problem?: string };
  cluster: { members: { id: string; url: string; aheadMs: number | null }[] };
}
