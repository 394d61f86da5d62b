import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { strangerProblem } from '../../lib/http-server.ts';

/** A request that somebody in front has handed over: a trusted proxy, or the front of a cluster's member. */
export interface Carried {
  /** Its body, which the front has read; undefined if it has none, or is still to be read. */
  body: Buffer | undefined;
  /** IP address of the caller. */
  address: string;
}

const CARRIED = Symbol('carried');
type WithCarried = IncomingMessage & { [CARRIED]?: Carried };

export function carry(request: IncomingMessage, carried: Carried): void {
  (request as WithCarried)[CARRIED] = carried;
}

/** How this request was handed over; undefined for one that came from its caller. */
export function carriedOf(request: IncomingMessage): Carried | undefined {
  return (request as WithCarried)[CARRIED];
}

/** The front of a cluster sets this header: the id under which all shards take one order. */
export const SHARED_ID_HEADER = 'x-paybox-shared-id';

/** Returns the id under which all shards of a cluster take this order; undefined for an order to this gateway alone. */
export function sharedIdOf({
  raw,
  headers,
}: {
  raw: IncomingMessage;
  headers: IncomingHttpHeaders;
}): string | undefined {
  const id = carriedOf(raw) === undefined ? undefined : headers[SHARED_ID_HEADER];
  return typeof id === 'string' ? id : undefined;
}

/** IP address of the caller. */
export function addressOf({ raw }: { raw: IncomingMessage }): string {
  return carriedOf(raw)?.address ?? raw.socket.remoteAddress ?? '';
}

/**
 * Why a request may come from another machine; `undefined` for a program or page of this machine. One that was handed
 * over may come from anywhere (PROTOCOL.md, clause THR-29).
 */
export function strangerOf({ raw }: { raw: IncomingMessage }): string | undefined {
  return carriedOf(raw) === undefined ? strangerProblem(raw) : 'through one of http.trustedProxies';
}
