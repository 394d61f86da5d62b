import { loginOf } from '../../../protocol/keys.ts';
import type { JudgedIdentity } from './endpoint.ts';

/** Why a login is not that of the box (PROTOCOL.md, clause TOP-2); undefined when it is. */
export function loginProblem(
  { terminalCode, secret }: JudgedIdentity,
  username: string,
  password: string,
): string | undefined {
  if (username !== terminalCode) return `it calls itself ${username || 'nothing'}, not ${terminalCode}`;
  return password === loginOf(secret) ? undefined : 'its password is not the one that the secret gives';
}
