import { readJws } from '../../../../protocol/jws.ts';
import type { UpMessage, UpOf } from '../../../../protocol/messages.ts';
import type { ReadMessage, SealRefusal } from '../../../../protocol/seal.ts';
import type { Violation } from '../../peer-log.ts';
import type { Connection } from './endpoint.ts';

type Head = ReadMessage<UpMessage>['jws']['head'];

/** Returns the clause that an unreadable message violates. */
export function clauseOfUnreadable({ code, reason }: { code: string; reason: string }, bytes: Uint8Array): string {
  const field = /^(terminalCode|serialNumber|type):/.exec(reason)?.[1];
  if (field !== undefined) return field === 'type' ? 'MSG-2' : 'LIM-5';
  const isSigned = code === 'MESSAGE_ILLEGAL' && typeof readJws(bytes) !== 'string';
  return isSigned ? 'MSG-1' : 'SIG-1';
}

/** Returns the clause that a message violates, by the code of its refusal. */
export function clauseOf(code: SealRefusal, isHello = false): string {
  if (code === 'WRONG_SESSION') return 'MSG-4';
  if (code === 'KEY_UNKNOWN') return 'SIG-2';
  return isHello && code === 'MESSAGE_REPLAYED' ? 'SIG-2' : 'SIG-1';
}

/** Returns the violations in a hello that can be read. */
export function helloViolations(
  connection: Connection,
  hello: UpOf<'hello'>,
  head: Head,
  sessions: readonly { kid: string; helloMs: number }[],
): Violation[] {
  const isOther = connection.sessionId !== undefined && connection.sessionId !== hello.sessionId;
  const earlier = sessions.findLast(({ kid }) => kid === head.kid);
  return violated([
    [connection.sessionId === undefined, 'PRE-1', 'said hello before its birth'],
    [isOther, connection.transport === 'mqtt' ? 'PRE-1' : 'BOX-HTTP-4', 'its hello is of another session'],
    [head.seq !== 1, 'SIG-1', `its hello has the number ${head.seq}`],
    [head.helloMs === undefined, 'SIG-2', 'its hello has no helloMs'],
    [
      earlier !== undefined && (head.helloMs ?? 0) <= earlier.helloMs,
      'SIG-2',
      'a hello by the same key is not later than the one before',
    ],
  ]);
}

/**
 * Returns the violations in the order of messages: numbers and times of a session must increase (PROTOCOL.md, clause
 * SIG-1).
 */
export function orderViolations(last: { seq: number; sessionMs: number }, { seq, sessionMs }: Head): Violation[] {
  return violated([
    [seq !== last.seq + 1, 'SIG-1', `message ${seq} of its session came after ${last.seq}`],
    [sessionMs < last.sessionMs, 'SIG-1', 'its sessionMs goes back'],
  ]);
}

function violated(rules: readonly [isViolated: boolean, clause: string, what: string][]): Violation[] {
  return rules.filter(([isViolated]) => isViolated).map(([, clause, what]) => ({ clause, what }));
}
