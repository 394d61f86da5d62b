import type { IncomingMessage, OutgoingHttpHeaders, RequestListener, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { TlsOptions } from 'node:tls';
import { Callers } from './callers.ts';
import type { Clock } from './clock.ts';
import { Connections, type RequestHead, type RequestOrigin } from './connections.ts';
import { FairQueue } from './fair-queue.ts';
import { createServer } from './http.ts';
import { proxyHeaderIn } from './proxy-headers.ts';
import { RequestTurns } from './request-turns.ts';
import { isStorable } from './text.ts';
import { HANDSHAKE_TIMEOUT_MS, TLS_FLOOR } from './tls.ts';

/** A reader has this time to read a finished answer. */
const ANSWER_TIMEOUT_MS = 20_000;

/**
 * Limits an HTTP server, in Node's names. The server cuts off slow headers and bodies, closes idle connections and
 * limits pipelined requests. Event streams never end, so these limits do not affect them.
 */
const SERVER_LIMITS = {
  headersTimeout: 10_000,
  requestTimeout: 20_000,
  keepAliveTimeout: 30_000,
  connectionsCheckingInterval: 1_000,
  maxHeaderSize: 16_384,
  maxRequestsPerSocket: 100,
  insecureHTTPParser: false,
};

/** Removes Fastify's JSON schema compilers, which take a quarter of its start. zod decodes the bodies instead. */
export const NO_JSON_SCHEMAS = { compilersFactory: { buildValidator: noCompiler, buildSerializer: noCompiler } };

function noCompiler(): never {
  throw new Error('decode with zod: a route has no JSON schema here');
}

/** Every answer has these headers by default: no other site may load, frame or open it, and nobody caches it. */
export const SAFE_HEADERS: OutgoingHttpHeaders = {
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-store',
};

/** A page loads nothing from other sites, uses scripts and styles from files only, and cannot be framed. */
export const PAGE_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self'; connect-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** Disconnects a reader that does not read this answer in time. Call it when the answer is ready. */
export async function cutSlowReader(response: ServerResponse, clock: Clock): Promise<void> {
  const taken = new AbortController();
  response.once('close', () => taken.abort('taken'));
  await clock.sleep(ANSWER_TIMEOUT_MS, taken.signal);
  if (!taken.signal.aborted) response.destroy();
}

export interface HttpServerOptions {
  /** The server evicts a connection for each one beyond this number (PROTOCOL.md, clause LIM-6). */
  connectionsMax: number;
  /** Limits the bytes of a request's headers. */
  maxHeaderSize?: number;
  /** With a certificate and its key (PEM), the server accepts TLS only. */
  tls?: TlsOptions | undefined;
  /** Knows the trusted proxies in front of the server. Without it there are none. */
  callers?: Callers;
}

/**
 * Creates a server that does not listen yet, with all limits of a paybox server (PROTOCOL.md, clause LIM-6). A
 * connection has one request at a time, and connections take turns. A request that a proxy could read differently is
 * answered like non-HTTP bytes: by the listeners of `clientError`, else with 400.
 */
export function createHttpServer(
  handler: RequestListener,
  { connectionsMax, maxHeaderSize = SERVER_LIMITS.maxHeaderSize, tls, callers = new Callers() }: HttpServerOptions,
): Server {
  const limits = { ...SERVER_LIMITS, maxHeaderSize };
  const turns = new RequestTurns((socket, reason) => {
    if (!server.emit('clientError', new Error(reason), socket)) socket.destroy();
  });
  const answer: RequestListener = (request, response) => {
    turns.begin(request, response);
    const problem = framingProblem(request);
    if (problem !== undefined) {
      if (server.emit('clientError', new Error(problem), request.socket)) return;
      response.writeHead(400, { ...SAFE_HEADERS, connection: 'close' }).end();
      return;
    }
    const caller = callers.ofPassedOn(request);
    if (caller === undefined) handler(request, response);
    else turns.whenMayBegin(caller, () => handler(request, response));
  };
  const server =
    tls === undefined
      ? createServer(limits, answer)
      : process
          .getBuiltinModule('node:https')
          .createServer({ ...limits, ...TLS_FLOOR, ...tls, handshakeTimeout: HANDSHAKE_TIMEOUT_MS }, answer);
  server.maxRequestsPerSocket = SERVER_LIMITS.maxRequestsPerSocket;
  limitConnections(server, connectionsMax, callers);
  // Node would answer any expectation other than 100-continue by itself, and so bypass turns and limits.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
  server.on(tls === undefined ? 'connection' : 'secureConnection', (socket: Socket) => {
    // Behind a trusted proxy, only the head of a request tells its caller.
    turns.add(socket, callers.isTrusted(socket.remoteAddress) ? undefined : callers.ofConnection(socket));
  });
  return server;
}

/**
 * Returns why two servers could find different ends of this request; undefined if they cannot. HTTP/1.0 has no
 * Transfer-Encoding: a proxy that ignores it reads the body as the next request (RFC 9112, section 6.1; PROTOCOL.md,
 * threat THR-4).
 */
function framingProblem({ httpVersion, headers }: IncomingMessage): string | undefined {
  const isPlain = httpVersion === '1.1' || headers['transfer-encoding'] === undefined;
  return isPlain ? undefined : `HTTP/${httpVersion} has no Transfer-Encoding`;
}

/**
 * Limits a server to `max` connections (see Connections). A connection is active from the complete request to the end
 * of its answer. It may be evicted while its body still arrives, or while the client does not read the answer. A
 * connection of a trusted proxy counts for the caller of its newest request.
 */
function limitConnections(server: Server, max: number, callers: Callers): void {
  const connections = new Connections(max);
  server.on('connection', (socket: Socket) => connections.add(socket, callers.ofConnection(socket)));
  // Node refuses requests beyond `maxRequestsPerSocket`, but leaves the connection open.
  server.on('dropRequest', (_request: IncomingMessage, socket: Socket) => socket.destroy());
  /** Counts answers in progress, by connection. */
  const underWay = new WeakMap<Socket, { count: number; answered: boolean }>();
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const { socket } = request;
    const caller = callers.ofPassedOn(request);
    if (caller !== undefined) connections.setAddress(socket, caller);
    const own = underWay.get(socket) ?? { count: 0, answered: false };
    underWay.set(socket, own);
    const change = (by: number) => {
      own.count += by;
      connections.setState(socket, own.count > 0 ? 'active' : own.answered ? 'idle' : 'mute');
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

/** Returns whether a body follows the headers. */
export function hasBody({ headers }: RequestHead): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

type Asked = RequestHead & { rawHeaders: readonly string[]; method?: string | undefined };

/** Returns the host name in `Host` without port and brackets; `undefined` unless there is exactly one valid header. */
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
 * Returns whether a browser sends this for a page of another origin, judged by `Origin` and Fetch Metadata. Other
 * programs send neither. A followed link does not count, because the other page cannot read the answer. Where the
 * answer is saved as a file or has an effect, use `isFromOtherPage`.
 */
export function isForeignPage({ headers, method }: Asked): boolean {
  const { origin, host } = headers;
  if (origin !== undefined && origin !== `http://${host}` && origin !== `https://${host}`) return true;
  const site = headers['sec-fetch-site'];
  if (site === undefined || site === 'same-origin' || site === 'none') return false;
  const isRead = method === 'GET' || method === 'HEAD';
  return !isRead || headers['sec-fetch-mode'] !== 'navigate' || headers['sec-fetch-dest'] !== 'document';
}

/**
 * Returns whether a page of another origin caused this request, including a link that a person followed. A browser
 * without Fetch Metadata names that page in `Referer`, unless the page forbids it.
 */
export function isFromOtherPage(request: Asked): boolean {
  const { host, referer } = request.headers;
  const site = request.headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return true;
  const isOwn = referer === undefined || URL.parse(referer)?.host === host;
  return !isOwn || isForeignPage(request);
}

export interface Credentials {
  username: string;
  password: string;
}

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Returns the Basic credentials of a request (RFC 7617); `undefined` if missing, not UTF-8, or with NUL. */
export function basicCredentials(request: RequestHead): Credentials | undefined {
  const encoded = /^Basic +([A-Za-z0-9+/]+={0,2}) *$/i.exec(request.headers.authorization ?? '')?.[1];
  const text = encoded === undefined ? '' : decoded(Buffer.from(encoded, 'base64'));
  const colon = text.indexOf(':');
  if (colon < 0 || !isStorable(text)) return undefined;
  return { username: text.slice(0, colon), password: text.slice(colon + 1) };
}

function decoded(bytes: Buffer): string {
  try {
    return UTF8.decode(bytes);
  } catch {
    return '';
  }
}

/** Returns the bearer token of a request (RFC 6750). */
export function bearerToken(request: RequestHead): string | undefined {
  return /^Bearer +([\w.~+/=-]+) *$/i.exec(request.headers.authorization ?? '')?.[1];
}

const SHOWN_CHARS_MAX = 32;

/**
 * Returns why a request may come from another machine; `undefined` for a program or page of this machine. It cannot
 * detect a local proxy that adds no header.
 */
export function strangerProblem({ socket, headers }: RequestOrigin): string | undefined {
  const { remoteAddress = '', localAddress } = socket;
  const isHere = /^(127\.|::1$|::ffff:127\.)/.test(remoteAddress) || remoteAddress === localAddress;
  if (!isHere) return 'not from this machine';
  const header = proxyHeaderIn(headers);
  return header === undefined ? undefined : `through a proxy, which sent ${header.slice(0, SHOWN_CHARS_MAX)}`;
}

/** The scheduler sends this many bytes of long answers per turn. A longer answer has its own turn of the event loop. */
const TURN_BYTES_MAX = 1_048_576;
/**
 * The scheduler waits this many turns between two batches, one more per `WAITING_PER_TURN` waiting answers. The pause
 * leaves time for new connections and other requests.
 */
const TURNS_BETWEEN_MAX = 16;
const WAITING_PER_TURN = 64;

/**
 * Spreads long answers over turns of the event loop, and lets addresses (a /64 of IPv6) take turns. The system accepts
 * unread data while its buffers have room, so thousands of long answers in a row would block everything else for
 * seconds. At most one answer waits per pending request, so the connection limit bounds this too.
 */
export class ResponseScheduler {
  readonly #waiting = new FairQueue<{ bytes: number; go: () => void }>();
  #isWorking = false;

  /** Settles when the caller may send this many bytes to the address. */
  next(bytes: number, address: string): Promise<void> {
    return new Promise((go) => {
      this.#waiting.add(address, { bytes, go });
      if (!this.#isWorking) void this.#work();
    });
  }

  async #work(): Promise<void> {
    this.#isWorking = true;
    while (this.#waiting.size > 0) {
      let sum = 0;
      for (let first = this.#waiting.peek(); first !== undefined; first = this.#waiting.peek()) {
        if (sum > 0 && sum + first.bytes > TURN_BYTES_MAX) break;
        sum += first.bytes;
        this.#waiting.take();
        first.go();
      }
      const turns = Math.min(TURNS_BETWEEN_MAX, 1 + Math.floor(this.#waiting.size / WAITING_PER_TURN));
      for (let turn = 0; turn < turns; turn += 1) await nextTurn();
    }
    this.#isWorking = false;
  }
}
