import type { IncomingMessage, OutgoingHttpHeaders, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from './clock.ts';

/** How long a reader may take for an answer that is ready. */
const ANSWER_TIMEOUT_MS = 20_000;

/**
 * What an HTTP server waits for and takes, in the names of Node: a client that sends headers or a body too slowly is cut
 * off, an idle connection is closed, and of requests sent without waiting for answers so many are looked at. Streams of
 * events are answers without an end and are not touched.
 */
export const SERVER_LIMITS = {
  headersTimeout: 10_000,
  requestTimeout: 20_000,
  keepAliveTimeout: 30_000,
  connectionsCheckingInterval: 1_000,
  maxHeaderSize: 16_384,
  maxRequestsPerSocket: 100,
  insecureHTTPParser: false,
};

/** Every answer says so unless it says otherwise: no other site may load, frame or hold it, and nobody keeps it. */
export const SAFE_HEADERS: OutgoingHttpHeaders = {
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-store',
};

/** A page loads nothing from elsewhere, runs and styles nothing but files, and stands in no other page. */
export const PAGE_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self'; connect-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** Cuts off a reader that has not taken this answer in time. To be called when the answer is ready. */
export async function cutSlowReader(response: ServerResponse, clock: Clock): Promise<void> {
  const taken = new AbortController();
  response.once('close', () => taken.abort());
  await clock.sleep(ANSWER_TIMEOUT_MS, taken.signal);
  if (!taken.signal.aborted) response.destroy();
}

interface Connection {
  socket: Socket;
  /** Whether it has had an answer to anything yet. */
  known: boolean;
  /** Answers that are not finished. */
  open: number;
  request: IncomingMessage | undefined;
}

/**
 * Keeps a server at `max` connections without shutting the door: the next one takes the place of one that is idle, of
 * the address that has the most, first of those that never asked anything, the oldest first.
 */
export function limitConnections(server: Server, max: number): void {
  /** By address, then by port: with TLS a request has another socket than its connection. */
  const byAddress = new Map<string, Map<number, Connection>>();
  let count = 0;
  server.on('connection', (socket: Socket) => {
    const { remoteAddress = '', remotePort = 0 } = socket;
    const own = byAddress.get(remoteAddress) ?? new Map<number, Connection>();
    byAddress.set(remoteAddress, own);
    const connection = { socket, known: false, open: 0, request: undefined };
    own.set(remotePort, connection);
    count += 1;
    socket.once('close', () => {
      count -= 1;
      if (own.get(remotePort) === connection) own.delete(remotePort);
      if (own.size === 0 && byAddress.get(remoteAddress) === own) byAddress.delete(remoteAddress);
    });
    if (count > max)
      (idleOf(mostOf(byAddress, socket), socket) ?? idleOf(allOf(byAddress), socket) ?? socket).destroy();
  });
  // Node refuses what is asked beyond `maxRequestsPerSocket`, but goes on to listen.
  server.on('dropRequest', (_request: IncomingMessage, socket: Socket) => socket.destroy());
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const { remoteAddress = '', remotePort = 0 } = request.socket;
    const connection = byAddress.get(remoteAddress)?.get(remotePort);
    if (connection === undefined) return;
    connection.request = request;
    connection.open += 1;
    response.once('close', () => {
      connection.open -= 1;
      connection.known = true;
    });
  });
}

type ByAddress = ReadonlyMap<string, ReadonlyMap<number, Connection>>;

/** The connections of the address that has the most, `but` one. */
function mostOf(byAddress: ByAddress, but: Socket): Iterable<Connection> {
  let [most, size]: [Iterable<Connection>, number] = [[], 0];
  for (const [address, own] of byAddress) {
    const others = address === but.remoteAddress ? own.size - 1 : own.size;
    if (others > size) [most, size] = [own.values(), others];
  }
  return most;
}

function* allOf(byAddress: ByAddress): Iterable<Connection> {
  for (const own of byAddress.values()) yield* own.values();
}

function idleOf(connections: Iterable<Connection>, but: Socket): Socket | undefined {
  let idle: Socket | undefined;
  for (const { socket, known, open, request } of connections) {
    // Whoever still sends a body is idle too: that is how a slow client holds a place.
    if (socket === but || socket.destroyed || (open > 0 && request?.complete === true)) continue;
    if (!known) return socket;
    idle ??= socket;
  }
  return idle;
}

type Asked = Pick<IncomingMessage, 'headers' | 'rawHeaders' | 'method'>;

/** The name in `Host` without its port, brackets taken off; `undefined` unless there is exactly one legal one. */
export function hostnameOf({ headers, rawHeaders }: Asked): string | undefined {
  const { host } = headers;
  const url = `http://${host}`;
  if (host === undefined || isSentTwice(rawHeaders, 'host') || !/^[\w.:[\]-]+$/.test(host)) return undefined;
  return URL.canParse(url) ? new URL(url).hostname.replace(/^\[|\]$/g, '') : undefined;
}

function isSentTwice(rawHeaders: readonly string[], name: string): boolean {
  return rawHeaders.filter((it, at) => at % 2 === 0 && it.toLowerCase() === name).length > 1;
}

/**
 * Whether a browser asks on behalf of a page of another origin, by `Origin` and Fetch Metadata. A program that is no
 * browser sends neither. Following a link to here is no such request: the other page cannot read what opens.
 */
export function isForeignPage({ headers, method }: Asked): boolean {
  const { origin, host } = headers;
  if (origin !== undefined && origin !== `http://${host}` && origin !== `https://${host}`) return true;
  const site = headers['sec-fetch-site'];
  if (site === undefined || site === 'same-origin' || site === 'none') return false;
  const isRead = method === 'GET' || method === 'HEAD';
  return !isRead || headers['sec-fetch-mode'] !== 'navigate' || headers['sec-fetch-dest'] !== 'document';
}
