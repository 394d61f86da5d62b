import type { IncomingMessage } from 'node:http';

/** A request, as the front of a cluster's member hands it to a shard. */
export interface Carried {
  /** Its body, which the front has read; undefined if it has none. */
  body: Buffer | undefined;
  /** IP address of the caller. */
  address: string;
}

const CARRIED = Symbol('carried');
type WithCarried = IncomingMessage & { [CARRIED]?: Carried };

export function carry(request: IncomingMessage, carried: Carried): void {
  (request as WithCarried)[CARRIED] = carried;
}

/** How the front handed this request over; undefined for one that came from its caller. */
export function carriedOf(request: IncomingMessage): Carried | undefined {
  return (request as WithCarried)[CARRIED];
}

/** IP address of the caller. */
export function addressOf({ raw }: { raw: IncomingMessage }): string {
  return carriedOf(raw)?.address ?? raw.socket.remoteAddress ?? '';
}
