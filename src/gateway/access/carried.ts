import type { IncomingMessage } from 'node:http';
import { strangerProblem } from '../../lib/http-server.ts';

const CALLER = Symbol('caller');
type PassedOn = IncomingMessage & { [CALLER]?: string };

/** Records the IP address of the caller whose request a trusted proxy has passed on. */
export function nameCaller(request: IncomingMessage, address: string): void {
  (request as PassedOn)[CALLER] = address;
}

/** Returns the IP address of the caller. */
export function addressOf({ raw }: { raw: PassedOn }): string {
  return raw[CALLER] ?? raw.socket.remoteAddress ?? '';
}

/**
 * Returns why a request may come from another machine. Undefined for a program or page of this machine. A request
 * through a proxy may come from anywhere (PROTOCOL.md, clause THR-29).
 */
export function strangerOf({ raw }: { raw: PassedOn }): string | undefined {
  return raw[CALLER] === undefined ? strangerProblem(raw) : 'through one of http.trustedProxies';
}
