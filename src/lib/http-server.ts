import type { IncomingMessage, OutgoingHttpHeaders, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from './clock.ts';
import { Connections, networkOf } from './connections.ts';

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

/**
 * Keeps a server at `max` connections without shutting the door (see Connections). A connection is active from the
 * moment that a request is whole until its answer is: whoever still sends a body, or does not take what was answered,
 * holds a place without need.
 */
export function limitConnections(server: Server, max: number): void {
  const connections = new Connections(max);
  server.on('connection', (socket: Socket) => connections.add(socket));
  // Node refuses what is asked beyond `maxRequestsPerSocket`, but goes on to listen.
  server.on('dropRequest', (_request: IncomingMessage, socket: Socket) => socket.destroy());
  /** Answers that are being made, of connections that have asked anything. */
  const underWay = new WeakMap<Socket, { count: number; answered: boolean }>();
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const { socket } = request;
    const own = underWay.get(socket) ?? { count: 0, answered: false };
    underWay.set(socket, own);
    const change = (by: number) => {
      own.count += by;
      connections.stands(socket, own.count > 0 ? 'active' : own.answered ? 'idle' : 'mute');
    };
    let isUnderWay = false;
    const begin = () => {
      if (response.writableEnded || response.destroyed) return;
      isUnderWay = true;
      change(1);
    };
    const end = () => {
      if (isUnderWay) change(-1);
      isUnderWay = false;
    };
    if (hasBody(request)) request.once('end', begin);
    else begin();
    response.once('prefinish', end);
    response.once('close', () => {
      own.answered = true;
      end();
      change(0);
    });
  });
}

/** Whether a body follows the headers. */
export function hasBody({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
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

/** By one of these, written with hyphens or underscores, a proxy says that it asks for somebody else. */
const PROXY_HEADER = /forwarded|real[-_]ip|client[-_]ip|connecting[-_]ip|^via$|^max-forwards$|^proxy-/;
const SHOWN_CHARS_MAX = 32;

/**
 * Why whoever asks may be of another machine than this one; `undefined` for a program or page of this machine. A proxy on
 * this machine that says nothing cannot be told from such a program.
 */
export function strangerProblem({ socket, headers }: Pick<IncomingMessage, 'socket' | 'headers'>): string | undefined {
  const { remoteAddress = '', localAddress } = socket;
  const isHere = /^(127\.|::1$|::ffff:127\.)/.test(remoteAddress) || remoteAddress === localAddress;
  if (!isHere) return 'not from this machine';
  const header = Object.keys(headers).find((name) => PROXY_HEADER.test(name));
  return header === undefined ? undefined : `through a proxy, which sent ${header.slice(0, SHOWN_CHARS_MAX)}`;
}

/** What long answers together may hand to the system in one turn of the event loop; a longer one goes alone. */
const TURN_BYTES_MAX = 1_048_576;
/** Turns until the next ones, one more for so many that wait: in each a newcomer is let in, and whatever is asked is done. */
const TURNS_BETWEEN_MAX = 16;
const WAITING_PER_TURN = 64;

interface Waiting {
  bytes: number;
  go: () => void;
}

/**
 * Spreads long answers over turns of the event loop, one of each address (a /64 of IPv6) after the other. The system takes
 * what a reader leaves unread at once, as long as its buffers have room: thousands of long answers in a row would stop
 * all else for seconds. Those that wait are no more than the connections that have asked.
 */
export class Turns {
  /** By network, the one whose turn is next first; of each the first come first. */
  readonly #waiting = new Map<string, Waiting[]>();
  #count = 0;
  #isWorking = false;

  /** Settles when so many bytes may be sent to this address. */
  next(bytes: number, address: string): Promise<void> {
    return new Promise((go) => {
      const network = networkOf(address);
      const own = this.#waiting.get(network) ?? [];
      own.push({ bytes, go });
      this.#count += 1;
      this.#waiting.set(network, own);
      if (!this.#isWorking) void this.#work();
    });
  }

  async #work(): Promise<void> {
    this.#isWorking = true;
    while (this.#waiting.size > 0) {
      let sum = 0;
      for (const [network, [first]] of this.#waiting) {
        if (first === undefined || (sum > 0 && sum + first.bytes > TURN_BYTES_MAX)) break;
        sum += first.bytes;
        this.#take(network);
        first.go();
      }
      const turns = Math.min(TURNS_BETWEEN_MAX, 1 + Math.floor(this.#count / WAITING_PER_TURN));
      for (let turn = 0; turn < turns; turn += 1) await nextTurn();
    }
    this.#isWorking = false;
  }

  /** Takes the first of a network away; the others of it are after those of all other networks. */
  #take(network: string): void {
    const [, ...others] = this.#waiting.get(network) ?? [];
    this.#waiting.delete(network);
    this.#count -= 1;
    if (others.length > 0) this.#waiting.set(network, others);
  }
}
