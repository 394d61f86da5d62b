import type { HeldSession, Place } from '../common/place.ts';
import type { Session } from './session.ts';

/** A gateway must answer within this time whether a session is in use. */
const HEARD_WITHIN_MS = 2_000;

/** The sessions of this gateway, by terminalCode. */
type Sessions = ReadonlyMap<string, Session>;

/** Returns the sessions of these boxes, at this gateway or another. */
export async function seenOf(
  terminalCodes: readonly string[],
  sessions: Sessions,
  place: Place,
): Promise<Map<string, HeldSession>> {
  const seen = new Map<string, HeldSession>();
  for (const code of terminalCodes) {
    const session = sessions.get(code);
    if (session !== undefined) seen.set(code, session.held);
  }
  const others = terminalCodes.filter((it) => !seen.has(it));
  if (others.length === 0) return seen;
  for (const [code, session] of await place.allElsewhere(others)) seen.set(code, session);
  return seen;
}

/** Returns whether another session of a box, here or elsewhere, may still be in use (PROTOCOL.md, clause MSG-8). */
export async function isAnotherAlive(
  terminalCode: string,
  sessionId: string,
  sessions: Sessions,
  place: Place,
): Promise<boolean> {
  const here = sessions.get(terminalCode);
  if (here?.isAlive === true && here.sessionId !== sessionId) return true;
  const there = await place.elsewhere(terminalCode);
  if (there === undefined || there.sessionId === sessionId) return false;
  const question = { box: terminalCode, sessionId: there.sessionId };
  // At a gateway that does not answer, the session may be in use. The agent asks again.
  return (await place.ask(there.run, 'heard', question, HEARD_WITHIN_MS)) ?? true;
}

/** Returns the codes of connected boxes, at most `limit`. With `among`, only of these. */
export async function onlineOf(
  limit: number,
  among: readonly string[] | undefined,
  sessions: Sessions,
  place: Place,
): Promise<string[]> {
  if (among !== undefined) return [...(await seenOf(among, sessions, place)).keys()].slice(0, limit);
  const here = [...sessions.keys()].slice(0, limit);
  const codes = new Set([...here, ...(await place.onlineElsewhere(limit))]);
  return [...codes].slice(0, limit);
}
