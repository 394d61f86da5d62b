import type { IncomingMessage } from 'node:http';
import { isIP, type LookupFunction } from 'node:net';
import { openHttp } from '../../lib/http-client.ts';
import { checkedLookup, destinationProblem, hostOf, type OwnPorts, portOf } from './destination.ts';

/** An answer is read up to here (PROTOCOL.md, clause SYN-6). */
const ANSWER_BYTES_MAX = 65_536;

export interface Answer {
  status: number;
  body: string;
  /** Whether there was more than the limit. */
  cut: boolean;
}

/**
 * Sends JSON and reads the answer, up to 64 KiB. Redirects are not followed. Rejects on a connection error, when `signal`
 * aborts, and where no callback may go.
 */
export type Post = (url: string, headers: Record<string, string>, body: string, signal: AbortSignal) => Promise<Answer>;

/**
 * How partners are called: everywhere but at this gateway's own ports and at link-local and metadata addresses. `lookup` finds
 * the addresses of names for one call, which an aborted `signal` ends.
 */
export function createPost(ownPorts: OwnPorts, lookup: (signal: AbortSignal) => LookupFunction): Post {
  return async (url, headers, body, signal) => {
    const to = new URL(url);
    const host = hostOf(to);
    // An address in the URL is never looked up, so it is checked here.
    const problem = isIP(host) === 0 ? undefined : destinationProblem(host, portOf(to), ownPorts);
    if (problem !== undefined) throw new Error(`${to.host} is no place for callbacks: ${problem}`);
    const response = await openHttp(to, {
      method: 'POST',
      headers,
      body,
      lookup: checkedLookup(portOf(to), ownPorts, lookup(signal)),
      // A kept connection that the partner closes meanwhile would fail an attempt that it never saw.
      agent: false,
      signal,
    });
    return readUpTo(response, ANSWER_BYTES_MAX);
  };
}

async function readUpTo(response: IncomingMessage, bytesMax: number): Promise<Answer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response) {
    chunks.push(chunk as Buffer);
    size += (chunk as Buffer).length;
    if (size > bytesMax) break;
  }
  const body = Buffer.concat(chunks).subarray(0, bytesMax).toString('utf8');
  return { status: response.statusCode ?? 0, body, cut: size > bytesMax };
}
