import type { Code } from '../../protocol/codes.ts';

/** A refusal of a request: the code goes to the peer, the reason to the log (PROTOCOL.md, clause ERR-5). */
export interface Refusal {
  ok: false;
  code: Code;
  reason: string;
}

export type Result<T> = { ok: true; value: T } | Refusal;

export function accept<T>(value: T): { ok: true; value: T } {
  return { ok: true, value };
}

export function refuse(code: Code, reason: string): Refusal {
  return { ok: false, code, reason };
}
