import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { z } from 'zod';
import { createHttpServer } from '../../../../lib/http-server.ts';
import { LIMITS } from '../../../../protocol/fields.ts';
import { BOX_CHALLENGE_HEADER, BOX_PATHS, BOX_SESSION_HEADER } from '../../../../protocol/http-api.ts';
import { BOX_ALIVE_MS } from '../../../../protocol/messages.ts';
import {
  type Connection,
  type EndpointWorld,
  type GatewayEndpoint,
  type JudgedIdentity,
  type ListenAddress,
  loginProblem,
  openServer,
} from './endpoint.ts';
import { TlsListener } from './tls-listener.ts';

const PORT_OPTION = '--http-port';
const CONNECTIONS_MAX = 64;
const STREAMS_MAX = 8;
const SESSION = z.uuid();

interface Stream extends Connection {
  readonly sessionId: string;
  readonly transport: 'http';
  cut(): void;
}

/** Answers to posts instead of the right one. `hang`: no answer. */
export type PostAnswer = 503 | 409 | 401 | 'hang';

/** Serves the box's HTTP connection (PROTOCOL.md, clause BOX-HTTP). */
export class HttpEndpoint implements GatewayEndpoint {
  readonly #identity: JudgedIdentity;
  readonly #world: EndpointWorld;
  readonly #server: Server;
  readonly #streams = new Map<string, Stream>();
  readonly #sockets = new Set<Socket>();
  refusesWith: PostAnswer | undefined;
  /** If true, nothing is written to streams, not even comments. */
  isSilent = false;
  /** Number of requests that got the answer `refusesWith`. */
  refused = 0;
  tls: TlsListener | undefined;
  connectionCount = 0;
  port = 0;

  constructor(identity: JudgedIdentity, world: EndpointWorld) {
    this.#identity = identity;
    this.#world = world;
    const handle = (request: IncomingMessage, response: ServerResponse) => this.#onRequest(request, response);
    this.#server = createHttpServer(handle, { connectionsMax: CONNECTIONS_MAX });
    this.#server.on('connection', (socket: Socket) => {
      this.connectionCount += 1;
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
  }

  /** Throws ConfigError when the address cannot be used. */
  async listen(at: ListenAddress): Promise<void> {
    const { tls } = this.#world;
    if (tls === undefined) this.port = await openServer(this.#server, at, PORT_OPTION);
    else {
      this.tls = await TlsListener.open(at, PORT_OPTION, tls, (socket) => this.#server.emit('connection', socket));
      this.port = this.tls.port;
    }
  }

  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Ends all streams, as a restart does. The next ones have other challenges. */
  async restart(): Promise<void> {
    for (const stream of this.#streams.values()) stream.cut();
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await Promise.all([closed, this.tls?.close()]);
  }

  #onRequest(request: IncomingMessage, response: ServerResponse): void {
    request.on('error', () => undefined);
    response.on('error', () => undefined);
    const { method, url } = request;
    const isPost = method === 'POST';
    const isRefused = this.refusesWith === 401 || (isPost && this.refusesWith !== undefined);
    if (isRefused) this.refused += 1;
    if (this.refusesWith === 'hang' && isPost) return;
    if (!this.#isLoggedIn(request) || this.refusesWith === 401) {
      end(response, 401, { 'www-authenticate': 'Basic realm="paybox box", charset="UTF-8"' });
      return;
    }
    const session = SESSION.safeParse(request.headers[BOX_SESSION_HEADER]);
    if (!session.success) {
      this.#world.events.violation('BOX-HTTP-1', `${method} ${url} without a UUID in ${BOX_SESSION_HEADER}`);
      end(response, 400);
    } else if (method === 'GET' && url === BOX_PATHS.stream) {
      this.#openStream(response, session.data);
    } else if (method === 'POST' && url === BOX_PATHS.messages) {
      this.#onPost(request, response, session.data);
    } else {
      this.#world.events.violation('BOX-HTTP-1', `${method} ${url} is none of its paths`);
      end(response, 404);
    }
  }

  #isLoggedIn({ headers, url }: IncomingMessage): boolean {
    const [scheme = '', encoded = ''] = (headers.authorization ?? '').split(' ', 2);
    const [username = '', password = ''] = Buffer.from(encoded, 'base64').toString('utf8').split(':', 2);
    const isBasic = scheme.toLowerCase() === 'basic';
    const problem = isBasic ? loginProblem(this.#identity, username, password) : 'it sends no Basic credentials';
    if (problem !== undefined || url === BOX_PATHS.stream) {
      this.#world.events.login({ transport: 'http', username, problem });
    }
    return problem === undefined;
  }

  #openStream(response: ServerResponse, sessionId: string): void {
    const challenge = this.#world.random.uuid();
    response.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      [BOX_CHALLENGE_HEADER]: challenge,
    });
    const over = new AbortController();
    const write = (text: string) => {
      if (!over.signal.aborted && !this.isSilent) response.write(text);
    };
    const stream: Stream = {
      transport: 'http',
      challenge,
      sessionId,
      get isOpen() {
        return !over.signal.aborted;
      },
      deliver: (bytes) => write(`data: ${Buffer.from(bytes).toString('utf8')}\n\n`),
      cut: () => response.destroy(),
    };
    response.once('close', () => {
      over.abort();
      if (this.#streams.get(sessionId) === stream) this.#streams.delete(sessionId);
    });
    this.#streams.get(sessionId)?.cut();
    this.#streams.set(sessionId, stream);
    const [oldest] = this.#streams.values();
    if (this.#streams.size > STREAMS_MAX) oldest?.cut();
    void this.#comment(write, over.signal);
  }

  async #comment(write: (text: string) => void, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      write(':\n\n');
      await this.#world.clock.sleep(BOX_ALIVE_MS, signal);
    }
  }

  #onPost(request: IncomingMessage, response: ServerResponse, sessionId: string): void {
    const chunks: Buffer[] = [];
    let bytes = 0;
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= LIMITS.messageBytesMax) chunks.push(chunk);
    });
    request.on('end', () => {
      if (bytes > LIMITS.messageBytesMax) {
        this.#world.events.violation('LIM-4', `posted ${bytes} bytes`);
        end(response, 413);
        return;
      }
      end(response, this.#answerTo(request, Buffer.concat(chunks), sessionId));
    });
  }

  #answerTo({ headers }: IncomingMessage, body: Buffer, sessionId: string): number {
    const { events } = this.#world;
    if (typeof this.refusesWith === 'number') return this.refusesWith;
    const stream = this.#streams.get(sessionId);
    if (stream === undefined) return 409;
    const type = headers['content-type'];
    if (type !== 'application/jose') events.violation('BOX-HTTP-2', `posted a message as ${type ?? 'no Content-Type'}`);
    return events.message(stream, body) === 'illegal' ? 400 : 202;
  }
}

function end(response: ServerResponse, status: number, headers: Record<string, string> = {}): void {
  response.writeHead(status, headers).end();
}
