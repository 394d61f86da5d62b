import type { IncomingHttpHeaders, IncomingMessage, RequestOptions } from 'node:http';
import { request as requestTls, Agent as TlsAgent } from 'node:https';
import type { Socket } from 'node:net';
import { decompressed, jsonIn } from './bodies.ts';
import { type Clock, systemClock, withAbortAfter } from './clock.ts';
import { CollectedBytes } from './collected-bytes.ts';
import { Agent, request as requestPlain } from './http.ts';

export interface HttpRequest
  extends Pick<RequestOptions, 'agent' | 'lookup' | 'signal'>,
    Pick<import('node:https').RequestOptions, 'ca' | 'cert' | 'ciphers' | 'key' | 'minVersion' | 'servername'> {
  headers?: Readonly<Record<string, string>> | undefined;
  /** The method is `GET` by default. */
  method?: string | undefined;
  /** The client sends it as JSON unless `headers` say otherwise. */
  body?: string | Uint8Array | undefined;
  /**
   * Without a connection within this time, the request fails with ETIMEDOUT. By default the system decides how long to
   * try.
   */
  connectTimeoutMs?: number;
}

export interface HttpAnswer {
  status: number;
  headers: IncomingHttpHeaders;
  /** The body without its `Content-Encoding`. */
  body: Buffer;
}

const POOL = { keepAlive: true, scheduling: 'lifo', timeout: 5_000 } as const;
/** Node's own agents would send requests for this machine to a proxy under NODE_USE_ENV_PROXY. */
const AGENTS = { plain: new Agent(POOL), tls: new TlsAgent(POOL) };

/** Reports an answer that exceeds its size limit. */
export class AnswerTooLong extends Error {
  constructor(bytesMax: number) {
    super(`the answer is longer than ${bytesMax} bytes`);
  }
}

/**
 * Sends a request and reads the complete answer, of any status. It does not follow redirects. Rejects on a connection
 * error, after `timeoutMs`, when `signal` aborts, for an answer of more than `bytesMax` bytes, and with UnreadableBody
 * for a `Content-Encoding` that is unknown or wrong.
 */
export async function askHttp(
  url: string | URL,
  { signal: parent, ...request }: HttpRequest,
  { timeoutMs, bytesMax, clock = systemClock }: { timeoutMs: number; bytesMax: number; clock?: Clock },
): Promise<HttpAnswer> {
  return withAbortAfter(clock, timeoutMs, parent, async (signal) => {
    try {
      const response = await openHttp(url, { ...request, signal });
      const { statusCode: status = 0, headers } = response;
      const body = await readBody(response, bytesMax);
      if (body === undefined) throw new AnswerTooLong(bytesMax);
      return { status, headers, body: await decompressed(body, headers, bytesMax) };
    } catch (error) {
      // This throws the signal's reason, which says more than "aborted".
      signal.throwIfAborted();
      throw error;
    }
  });
}

/**
 * Sends a request past any proxy, and returns once the headers of the answer arrive. The caller sets a time limit
 * (`signal`) and reads or destroys the answer.
 */
export function openHttp(
  url: string | URL,
  { body, headers, connectTimeoutMs, ...options }: HttpRequest,
): Promise<IncomingMessage> {
  const to = new URL(url);
  const [send, agent] = to.protocol === 'https:' ? [requestTls, AGENTS.tls] : [requestPlain, AGENTS.plain];
  const content =
    body === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
  return new Promise((resolve, reject) => {
    const request = send(to, { agent, ...options, headers: { ...content, ...headers } });
    request.on('error', reject);
    request.on('response', resolve);
    if (connectTimeoutMs !== undefined) request.once('socket', (socket) => limitConnect(socket, connectTimeoutMs));
    // After an upgrade no response follows, and aborting would not end the wait.
    request.on('upgrade', ({ statusCode }, socket) => {
      socket.destroy();
      reject(new Error(`the answer is HTTP ${statusCode}, a protocol upgrade`));
    });
    request.end(body);
  });
}

function limitConnect(socket: Socket, timeoutMs: number): void {
  if (!socket.connecting) return;
  const over = new AbortController();
  for (const event of ['connect', 'close']) socket.once(event, () => over.abort('over'));
  void systemClock.sleep(timeoutMs, over.signal).then(() => {
    if (over.signal.aborted) return;
    socket.destroy(Object.assign(new Error(`no connection within ${timeoutMs} ms`), { code: 'ETIMEDOUT' }));
  });
}

/** Reads a body; returns undefined without reading the rest if it has more than `bytesMax` bytes. */
export async function readBody(message: IncomingMessage, bytesMax: number): Promise<Buffer | undefined> {
  const body = new CollectedBytes(bytesMax);
  for await (const piece of message as AsyncIterable<Buffer>) {
    if (!body.add(piece)) return undefined;
  }
  return body.bytes;
}

/** Returns the parsed JSON, which may begin with a byte order mark; undefined if it is invalid. */
export function parseJson(text: string | Buffer): unknown {
  try {
    return jsonIn(Buffer.from(text));
  } catch {
    return undefined;
  }
}

/** Returns the authorization header for an admin's or box page token; empty without a token. */
export function authorizationHeader(token: string | undefined): Record<string, string> {
  return token === undefined ? {} : { authorization: `Bearer ${token}` };
}
