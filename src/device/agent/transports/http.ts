import type { IncomingMessage } from 'node:http';
import { Agent as TlsAgent } from 'node:https';
import { createParser } from 'eventsource-parser';
import { z } from 'zod';
import { type Clock, withAbortAfter } from '../../../lib/clock.ts';
import { MissingPeerError, PayboxError, reasonOf, systemCodeOf } from '../../../lib/errors.ts';
import { Agent } from '../../../lib/http.ts';
import { type HttpRequest, openHttp } from '../../../lib/http-client.ts';
import type { Logger } from '../../../lib/log.ts';
import { HTTP_SCHEMES, isTlsUrl } from '../../../lib/tls.ts';
import {
  BOX_CHALLENGE_HEADER,
  BOX_EVENT_CHARS_MAX,
  BOX_PATHS,
  BOX_SESSION_HEADER,
  BOX_SILENCE_MAX_MS,
} from '../../../protocol/http-api.ts';
import { loginOf } from '../../../protocol/keys.ts';
import { BOX_ALIVE_MS, type UpMessage } from '../../../protocol/messages.ts';
import type { Connection, LoginIo, SessionIo, Transport } from '../contract.ts';
import { begun } from './begin.ts';
import { lost } from './inbound-queue.ts';
import { MessageQueue, notRegistered } from './message-queue.ts';
import { certificateFix, checkTls, connectionTls, gatewayOrigin, tlsOptions } from './tls.ts';

const httpOptions = z
  .strictObject({
    url: gatewayOrigin,
    connectTimeoutMs: z.int().min(500).max(60_000).default(8000).describe('until the stream is open'),
    ...tlsOptions,
  })
  .superRefine(checkTls(HTTP_SCHEMES));

export type HttpOptions = z.infer<typeof httpOptions>;

/** A post counts as lost after this time. It is the rest of the allowed silence after the last answer. */
const POST_TIMEOUT_MS = BOX_SILENCE_MAX_MS - BOX_ALIVE_MS;
/** The box reads at most this much of the answer to a post, because only its status matters. */
const ANSWER_BYTES_MAX = 65_536;
/**
 * Light boxes share this many idle connections for posts. A post in flight has a connection of its own, so none waits
 * for another box's.
 */
const LIGHT_IDLE_MAX = 64;

/** Connects a box over HTTP, also behind NAT (PROTOCOL.md, clause BOX-HTTP). */
export const httpTransport: Transport<HttpOptions> = {
  name: 'http',
  summary: 'an HTTP stream that the box opens to the gateway, which works behind NAT',
  schemes: HTTP_SCHEMES,
  canEnrol: true,
  options: httpOptions,
  example: { url: 'http://127.0.0.1:8800', connectTimeoutMs: 8000 },
  urlOf: ({ origin }) => origin,
  checkLogin,
  open: (options, io, signal) => openHttpLink(options, io, signal, ownSockets(options)),
  openLight: async () => {
    const { plain, tls } = { plain: sharedSockets(Agent), tls: sharedSockets(TlsAgent) };
    return {
      open: (options, io, signal) =>
        openHttpLink(options, io, signal, isTlsUrl(options.url, HTTP_SCHEMES) ? tls : plain),
      close: () => {
        for (const { posts } of [plain, tls]) posts.destroy();
      },
    };
  },
};

type AnyAgent = InstanceType<typeof Agent>;

/** Provides the sockets for a box's stream and posts. */
interface Sockets {
  stream: AnyAgent | false;
  posts: AnyAgent;
  /** Releases the sockets. */
  release(): void;
}

function ownSockets({ url }: HttpOptions): Sockets {
  const pool = { keepAlive: true, maxSockets: 1 };
  const posts = isTlsUrl(url, HTTP_SCHEMES) ? new TlsAgent(pool) : new Agent(pool);
  return { stream: false, posts, release: () => posts.destroy() };
}

/** Shares sockets among light boxes, which start and end at different times. */
function sharedSockets(kind: typeof Agent | typeof TlsAgent): Sockets {
  return {
    stream: new kind({ keepAlive: false }),
    posts: new kind({ keepAlive: true, maxFreeSockets: LIGHT_IDLE_MAX }),
    release: () => undefined,
  };
}

async function openHttpLink(
  options: HttpOptions,
  io: SessionIo,
  signal: AbortSignal,
  sockets: Sockets,
): Promise<Connection> {
  signal.throwIfAborted();
  return begun(new HttpConnection(options, io, sockets), options, io, signal);
}

function headersOf({ identity, sessionId }: LoginIo): Record<string, string> {
  const credentials = Buffer.from(`${identity.terminalCode}:${loginOf(identity.secret)}`, 'utf8').toString('base64');
  return { authorization: `Basic ${credentials}`, [BOX_SESSION_HEADER]: sessionId };
}

/** Returns how long the gateway asks to wait, if it says so in whole seconds. */
function retryAfterMsOf(headers: IncomingMessage['headers']): number | undefined {
  const told = headers['retry-after'] ?? '';
  return /^\d{1,5}$/.test(told) ? Number(told) * 1_000 : undefined;
}

/** Posts to a stream that is not open. The status code shows whether the login is valid. */
async function checkLogin(options: HttpOptions, io: LoginIo, signal: AbortSignal): Promise<string> {
  const url = new URL(BOX_PATHS.messages, options.url);
  const tls = isTlsUrl(options.url, HTTP_SCHEMES) ? connectionTls(options) : {};
  const request = { ...tls, method: 'POST', headers: headersOf(io), agent: false, signal } as const;
  const { statusCode } = (await openHttp(url, request)).destroy();
  if (statusCode === 409 || statusCode === 204) return 'the gateway takes it';
  throw new Error(statusCode === 401 ? 'the gateway refuses it' : `the gateway answers ${statusCode} to it`);
}

class HttpConnection implements Connection {
  readonly incoming: MessageQueue;
  readonly #origin: string;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #seal: SessionIo['seal'];
  readonly #terminalCode: string;
  readonly #headers: Record<string, string>;
  readonly #tls: ReturnType<typeof connectionTls> | undefined;
  readonly #sockets: Sockets;
  readonly #closed = new AbortController();
  /**
   * The promise of the last post. Posts run one after the other, so that they arrive in the order of sending and each
   * has its full time.
   */
  #posts: Promise<unknown> = Promise.resolve();
  #challenge = '';
  #lastReadMs: number;

  constructor(options: HttpOptions, io: SessionIo, sockets: Sockets) {
    this.#origin = new URL(options.url).origin;
    this.#clock = io.clock;
    this.#log = io.log;
    this.#seal = io.seal;
    this.#terminalCode = io.identity.terminalCode;
    this.#headers = headersOf(io);
    this.#tls = isTlsUrl(options.url, HTTP_SCHEMES) ? connectionTls(options) : undefined;
    this.#sockets = sockets;
    this.incoming = new MessageQueue(io);
    this.#lastReadMs = io.clock.monotonicMs();
  }

  /** Opens the stream (PROTOCOL.md, clause BOX-HTTP-1). */
  async begin(signal: AbortSignal): Promise<void> {
    const giveUp = () => this.incoming.fail(this.#notThere(signal.reason));
    signal.addEventListener('abort', giveUp, { once: true });
    try {
      const headers = { ...this.#headers, accept: 'text/event-stream' };
      const opening = this.#request(BOX_PATHS.stream, { headers, agent: this.#sockets.stream }).catch(
        (error: unknown) => {
          throw this.#notThere(error);
        },
      );
      this.#read(await this.incoming.whileOpen(opening));
    } finally {
      signal.removeEventListener('abort', giveUp);
    }
  }

  /** Sends one message (PROTOCOL.md, clause BOX-HTTP-2). */
  async send(message: UpMessage): Promise<void> {
    const body = this.#seal.seal(message, this.#challenge);
    const headers = { ...this.#headers, 'content-type': 'application/jose' };
    const answer = await this.#post(BOX_PATHS.messages, { method: 'POST', headers, body });
    if (answer.statusCode !== 202) throw this.#refusalOf(answer, message.type);
  }

  async close(): Promise<void> {
    this.incoming.close();
    this.#closed.abort();
    this.#sockets.release();
  }

  /** Posts after all earlier posts are answered. Returns the answer once the connection is free again. */
  #post(path: string, request: HttpRequest): Promise<IncomingMessage> {
    const posting = this.#posts.then(() => {
      return withAbortAfter(this.#clock, POST_TIMEOUT_MS, this.#closed.signal, (signal) =>
        this.#postOrRepeat(path, { ...request, signal }),
      );
    });
    const over = () => undefined;
    this.#posts = posting.then(over, over);
    return this.incoming.whileOpen(posting).catch((error: unknown) => {
      throw error instanceof PayboxError ? error : lost(`${this.#origin} took no post: ${reasonOf(error)}`, error);
    });
  }

  /**
   * Posts, and repeats one kind of failure once: a gateway may close an idle connection just when the box uses it
   * again.
   */
  async #postOrRepeat(path: string, request: HttpRequest): Promise<IncomingMessage> {
    const attempt = async () => {
      const answer = await this.#request(path, { ...request, agent: this.#sockets.posts });
      const closed = new Promise<void>((resolve) => answer.once('close', () => resolve()));
      let bytes = 0;
      answer.on('error', () => undefined);
      answer.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > ANSWER_BYTES_MAX) answer.destroy();
      });
      await closed;
      return answer;
    };
    try {
      return await attempt();
    } catch (error) {
      request.signal?.throwIfAborted();
      if (systemCodeOf(error) !== 'ECONNRESET') throw error;
      return attempt();
    }
  }

  #request(path: string, request: HttpRequest): Promise<IncomingMessage> {
    return openHttp(new URL(path, this.#origin), { ...this.#tls, signal: this.#closed.signal, ...request });
  }

  #read(response: IncomingMessage): void {
    // An unhandled error would end the process; `close` follows it.
    response.on('error', () => undefined);
    const type = response.headers['content-type'] ?? '';
    if (response.statusCode !== 200 || !type.startsWith('text/event-stream')) {
      response.resume();
      throw this.#refusalOf(response, 'stream');
    }
    this.#challenge = String(response.headers[BOX_CHALLENGE_HEADER] ?? '');
    const parser = createParser({
      maxBufferSize: BOX_EVENT_CHARS_MAX,
      onEvent: ({ data }) => this.incoming.take(data),
      onError: (error) => {
        if (error.type === 'max-buffer-size-exceeded') {
          this.#giveUp(lost(`${this.#origin} sent an event of more than ${BOX_EVENT_CHARS_MAX} characters`, error));
        } else this.#log.warn('message-refused', { code: 'MESSAGE_ILLEGAL', reason: error.message });
      },
    });
    response.setEncoding('utf8');
    response.on('data', (text: string) => {
      this.#lastReadMs = this.#clock.monotonicMs();
      if (!this.#closed.signal.aborted) parser.feed(text);
    });
    response.on('close', () => this.#giveUp(lost(`${this.#origin} ended the stream`)));
    void this.#watchSilence();
  }

  async #watchSilence(): Promise<void> {
    const { signal } = this.#closed;
    this.#lastReadMs = this.#clock.monotonicMs();
    while (!signal.aborted) {
      const leftMs = this.#lastReadMs + BOX_SILENCE_MAX_MS - this.#clock.monotonicMs();
      if (leftMs <= 0) this.#giveUp(lost(`${this.#origin} was silent for ${BOX_SILENCE_MAX_MS} ms`));
      else await this.#clock.sleep(leftMs, signal);
    }
  }

  #giveUp(reason: PayboxError): void {
    this.incoming.fail(reason);
    this.#closed.abort();
  }

  /** Returns the error for a status code that is not the expected one (PROTOCOL.md, clause BOX-HTTP-4). */
  #refusalOf({ statusCode, headers }: Pick<IncomingMessage, 'statusCode' | 'headers'>, what: string): PayboxError {
    if (statusCode === 401) return notRegistered(`the gateway at ${this.#origin}`, this.#terminalCode);
    if (statusCode === 409) return lost(`the gateway at ${this.#origin} does not know this stream any more`);
    const retryAfterMs = retryAfterMsOf(headers);
    if (statusCode === 503 || retryAfterMs !== undefined) {
      const message = `the gateway at ${this.#origin} cannot take the ${what} now`;
      return new PayboxError('LINK_LOST', message, { severity: 'retryable', retryAfterMs });
    }
    if (statusCode === 400) {
      const message = `the gateway at ${this.#origin} refused a ${what} message as illegal`;
      return new PayboxError('E46', message, { severity: 'fatal', fix: 'agent and gateway must be of one version' });
    }
    const fix = 'check that link.url is the origin of a gateway';
    return new MissingPeerError(`${this.#origin} answered ${statusCode} to the ${what}`, fix);
  }

  #notThere(cause: unknown): MissingPeerError {
    const fix = certificateFix(cause) ?? 'check link.url, and that the gateway runs and can be reached';
    return new MissingPeerError(`the gateway at ${this.#origin} cannot be reached: ${reasonOf(cause)}`, fix, cause);
  }
}
