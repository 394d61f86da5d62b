import type { UpOf } from '../../protocol/messages.ts';
import type { HeldSession, Place } from '../common/place.ts';
import type { World } from '../common/world.ts';
import type { BoxConnection } from './connection.ts';
import type { Session } from './session.ts';

/** A gateway must answer within this time whether a session is in use. */
const HEARD_WITHIN_MS = 2_000;

/** The session of a box, wherever it is. */
export type SeenSession = HeldSession;

/** The sessions of this gateway, by terminalCode. */
type Sessions = ReadonlyMap<string, Session>;

/** Returns a session of this gateway as others see it. */
function heldOf(terminalCode: string, session: Session): HeldSession {
  const { sessionId, serialNumber, agentVersion, display, sinceMs, connection } = session;
  return { terminalCode, sessionId, serialNumber, agentVersion, display, transport: connection.transport, sinceMs };
}

/** Returns the session that a box begins by this hello. */
export function heldBy(hello: UpOf<'hello'>, { transport }: BoxConnection, { clock }: World): HeldSession {
  const { terminalCode, sessionId, serialNumber, agentVersion, display } = hello;
  return { terminalCode, sessionId, serialNumber, agentVersion, display, transport, sinceMs: clock.wallMs() };
}

/** Returns the sessions of these boxes, at this gateway or another. */
export async function seenOf(
  terminalCodes: readonly string[],
  sessions: Sessions,
  place: Place,
): Promise<Map<string, SeenSession>> {
  const seen = new Map<string, SeenSession>();
  for (const code of terminalCodes) {
    const session = sessions.get(code);
    if (session !== undefined) seen.set(code, heldOf(code, session));
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
