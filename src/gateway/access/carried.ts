import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { strangerProblem } from '../../lib/http-server.ts';

/** A record of how a trusted proxy, or the front of a cluster's member, has passed a request on. */
export interface Carried {
  /** The body that the front has read. Undefined if the request has none, or if nobody has read it yet. */
  body: Buffer | undefined;
  /** IP address of the caller. */
  address: string;
}

const CARRIED = Symbol('carried');
type WithCarried = IncomingMessage & { [CARRIED]?: Carried };

export function carry(request: IncomingMessage, carried: Carried): void {
  (request as WithCarried)[CARRIED] = carried;
}

/** Returns what a trusted proxy or a front has passed on with the request. Undefined if the caller himself sent it. */
export function carriedOf(request: IncomingMessage): Carried | undefined {
  return (request as WithCarried)[CARRIED];
}

/** The front of a cluster sets this header. Its value is the id that all shards give to one order. */
export const SHARED_ID_HEADER = 'x-paybox-shared-id';

/** Returns the id that all shards of a cluster give to this order. Undefined for an order to this gateway alone. */
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

/** Returns the IP address of the caller. */
export function addressOf({ raw }: { raw: IncomingMessage }): string {
  return carriedOf(raw)?.address ?? raw.socket.remoteAddress ?? '';
}

/**
 * Returns why a request may come from another machine. Undefined for a program or page of this machine. A request
 * through a proxy or a front may come from anywhere (PROTOCOL.md, clause THR-29).
 */
export function strangerOf({ raw }: { raw: IncomingMessage }): string | undefined {
  return carriedOf(raw) === undefined ? strangerProblem(raw) : 'through one of http.trustedProxies';
}
