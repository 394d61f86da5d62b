import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import Fastify, { type FastifyError, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { systemClock } from '../../lib/clock.ts';
import { ConfigError, reasonOf, systemCodeOf } from '../../lib/errors.ts';
import { EventStream } from '../../lib/event-stream.ts';
import {
  createHttpServer,
  cutSlowReader,
  hostnameOf,
  isForeignPage,
  NO_JSON_SCHEMAS,
  SAFE_HEADERS,
  strangerProblem,
} from '../../lib/http-server.ts';
import type { Logger } from '../../lib/log.ts';
import { isLoopbackHost } from '../../lib/tls.ts';
import { equalSecrets } from '../../protocol/checksum.ts';
import { StepFailure } from '../engine/steps/context.ts';
import { aboutRoutes } from './about-routes.ts';
import { rigRoutes } from './rig-routes.ts';
import { Rigs } from './rigs.ts';
import { type Answer, openApi, Refusal, type Route, type ServerDeps, type Subscribe } from './route.ts';
import { runRoutes } from './run-routes.ts';
import { Runs } from './runs.ts';
import { LIMITS } from './schemas.ts';

const CONNECTIONS_MAX = 256;
/** A report page has a style and content policy of its own. */
const REPORT_POLICY = "frame-ancestors 'none'";
/** The server disconnects a reader with more unread bytes. The reader may resume with Last-Event-ID. */
const UNREAD_BYTES_MAX = 1_000_000;
const HEARTBEAT_MS = 10_000;

export interface ServerOptions {
  host: string;
  /** The port; 0 chooses a free one. */
  port: number;
  /** The token that every caller needs. Without one, only callers on this machine are allowed. */
  token: string | undefined;
  /** The version of the program. */
  version: string;
  log: Logger;
}

/** A bench server that accepts requests. */
export interface BenchServer {
  /** The server's origin, for example `http://127.0.0.1:8820`. */
  readonly origin: string;
  /** Ends every run and rig; resolves when all their parts have ended. */
  close(reason: string): Promise<void>;
}

/** Starts the bench server. Throws ConfigError when the address cannot be used. */
export async function startBenchServer(options: ServerOptions, deps: ServerDeps): Promise<BenchServer> {
  const runs = new Runs();
  const rigs = new Rigs(deps);
  const routes: Route[] = [];
  const counts = () => ({ runs: runs.all().filter(({ isOver }) => !isOver).length, rigs: rigs.all().length });
  const described = () => openApi(routes, options.version);
  routes.push(...aboutRoutes(deps, counts, described), ...runRoutes(runs, deps), ...rigRoutes(rigs));
  const app = createApp(options);
  const streams = new EventStreams();
  for (const route of routes) addRoute(app, route, streams);
  answerUnknownPaths(app, routes);
  const port = await listen(app, options);
  return {
    origin: `http://${options.host.includes(':') ? `[${options.host}]` : options.host}:${port}`,
    close: async (reason) => {
      await Promise.all([runs.close(reason), rigs.close(reason)]);
      await app.close();
    },
  };
}

function createApp({ token, log }: ServerOptions): FastifyInstance {
  const app = Fastify({
    logger: false,
    schemaController: NO_JSON_SCHEMAS,
    bodyLimit: LIMITS.bodyBytes,
    serverFactory: (handler) => createHttpServer(handler, { connectionsMax: CONNECTIONS_MAX }),
    forceCloseConnections: true,
    return503OnClosing: false,
    exposeHeadRoutes: false,
    frameworkErrors: (_error, _request, reply: FastifyReply) => {
      void refuse(reply, new Refusal(404, 'malformed path', 'GET / lists all addresses'));
    },
    clientErrorHandler: answerInvalidRequest,
  });
  app.removeContentTypeParser('text/plain');
  const parseJson = app.getDefaultJsonParser('error', 'error');
  // Many clients send a content type even without a body.
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (request, body, done) =>
    body === '' ? done(null, undefined) : parseJson(request, String(body), done),
  );
  app.addHook('onRequest', async (request, reply) => {
    for (const [name, value] of Object.entries(SAFE_HEADERS)) reply.raw.setHeader(name, value ?? '');
    assertAllowed(request.raw, token);
  });
  app.addHook('onSend', async (_request, reply) => {
    void cutSlowReader(reply.raw, systemClock);
  });
  app.setErrorHandler((error: FastifyError | Error, request, reply) => {
    const refusal = refusalOf(error, request);
    if (refusal.status === 500) log.error('request-failed', { path: request.url, reason: reasonOf(error) });
    return refuse(reply, refusal);
  });
  return app;
}

/** Holds the open event streams (SSE) of a server. */
class EventStreams {
  readonly #streams = new Set<EventStream>();

  /** Checks the number of streams. Throws Refusal when their limit is reached. */
  assertRoom(): void {
    if (this.#streams.size < LIMITS.streams) return;
    throw new Refusal(503, `${LIMITS.streams} streams are open already`, 'end one, or ask for the run itself');
  }

  /** Streams events until they end or the reader disconnects. */
  open(response: ServerResponse, follow: Subscribe): void {
    const options = { clock: systemClock, heartbeatMs: HEARTBEAT_MS, unreadBytesMax: UNREAD_BYTES_MAX };
    const stream = new EventStream(response, options);
    this.#streams.add(stream);
    const stop = follow((event) => {
      if (event === undefined) stream.end();
      else stream.send({ ...event, data: JSON.stringify(event.data) });
    });
    void stream.ended.then(() => {
      stop();
      this.#streams.delete(stream);
    });
  }
}

function addRoute(app: FastifyInstance, route: Route, streams: EventStreams): void {
  app.route({
    method: route.method,
    url: route.path,
    handler: async (request, reply) => {
      const params = request.params as Record<string, string>;
      const { headers, body } = request;
      const answer = await route.handle({ params, headers, body, signal: disconnectSignal(reply) });
      if ('follow' in answer) {
        streams.assertRoom();
        reply.hijack();
        streams.open(reply.raw, answer.follow);
        return reply;
      }
      return send(reply, answer);
    },
  });
}

function send(reply: FastifyReply, answer: Exclude<Answer, { follow: unknown }>): FastifyReply {
  reply.code(answer.status).headers(answer.headers ?? {});
  if ('json' in answer) return reply.type('application/json; charset=utf-8').send(JSON.stringify(answer.json));
  if (answer.status === 204) return reply.send();
  const isPage = answer.type.startsWith('text/html');
  if (isPage) reply.header('content-security-policy', REPORT_POLICY);
  return reply.type(answer.type).send(answer.body);
}

/** Returns a signal that aborts when the connection ends before the answer. */
function disconnectSignal({ raw }: FastifyReply): AbortSignal {
  const gone = new AbortController();
  raw.once('close', () => {
    if (!raw.writableEnded) gone.abort(new Error('the caller went away'));
  });
  return gone.signal;
}

function refuse(reply: FastifyReply, { status, message, fix, headers }: Refusal): FastifyReply {
  const body = JSON.stringify({ error: message, fix });
  return reply.code(status).headers(headers).type('application/json; charset=utf-8').send(body);
}

/** Returns the answer for an error: 500 when the caller did not cause it. */
function refusalOf(error: FastifyError | Error, request: FastifyRequest): Refusal {
  if (error instanceof Refusal) return error;
  if (error instanceof ConfigError) return new Refusal(422, error.message, error.fix);
  if (error instanceof StepFailure) {
    return new Refusal(409, error.message, `${request.url.replace(/\/steps$/, '')}/report.html shows what was seen`);
  }
  const status = 'statusCode' in error ? error.statusCode : undefined;
  if (status === 413) return new Refusal(413, `the body is longer than ${LIMITS.bodyBytes} bytes`, 'send less at once');
  if (status === 415) {
    const type = request.headers['content-type'] ?? 'of no type';
    return new Refusal(415, `the body is ${type}`, 'send JSON with Content-Type: application/json');
  }
  if (status !== undefined && status >= 400 && status < 500) {
    return new Refusal(400, `the body is no JSON: ${reasonOf(error)}`, 'send one JSON value');
  }
  return new Refusal(500, `the bench itself failed: ${reasonOf(error)}`, 'see the output of the server');
}

function answerUnknownPaths(app: FastifyInstance, routes: readonly Route[]): void {
  const known = routes.map(({ path, method }) => {
    const pattern = new RegExp(`^${path.replaceAll('.', '\\.').replaceAll(/:\w+/g, '[^/]+')}$`);
    return { pattern, method };
  });
  app.setNotFoundHandler((request) => {
    const path = request.url.split('?', 1)[0] ?? '';
    const methods = known.filter(({ pattern }) => pattern.test(path)).map(({ method }) => method);
    if (methods.length === 0) throw new Refusal(404, `there is no ${path}`, 'GET / lists all addresses');
    const allow = methods.join(', ');
    throw new Refusal(405, `${request.method} is not allowed for ${path}`, `allowed: ${allow}`, { allow });
  });
}

/** Answers an invalid or too slow request on the socket and closes it. */
function answerInvalidRequest(error: Error, socket: Socket): void {
  const isLate = systemCodeOf(error) === 'ERR_HTTP_REQUEST_TIMEOUT';
  const line = isLate ? '408 Request Timeout' : '400 Bad Request';
  const body = JSON.stringify({ error: isLate ? 'the request did not come in time' : 'not HTTP', fix: '' });
  const head = `content-type: application/json\r\ncontent-length: ${body.length}\r\nconnection: close`;
  if (socket.writable) socket.write(`HTTP/1.1 ${line}\r\n${head}\r\n\r\n${body}`);
  socket.destroySoon();
}

async function listen(app: FastifyInstance, { host, port }: ServerOptions): Promise<number> {
  try {
    await app.listen({ host, port });
  } catch (error) {
    const code = systemCodeOf(error);
    if (code === 'EADDRINUSE') {
      throw new ConfigError(
        `port ${port} of --port is in use`,
        'stop what uses it, or give another with --port; 0 takes a free one',
      );
    }
    throw new ConfigError(`--host ${host}, --port ${port} cannot be opened: ${reasonOf(error)}`, 'choose others');
  }
  return (app.server.address() as AddressInfo).port;
}

/** This path needs no token, so monitoring needs none. */
const OPEN_PATH = '/healthz';

/**
 * Checks that a request may be answered. With a token, callers must send it; without one, only programs and pages of this machine
 * may ask. Throws Refusal.
 */
export function assertAllowed(request: IncomingMessage, token: string | undefined): void {
  const host = hostnameOf(request);
  if (host === undefined) throw new Refusal(400, 'Host is not one legal name', 'ask with the address of the server');
  if (isForeignPage(request)) throw new Refusal(403, 'a page of another origin asks', 'ask from a program');
  if (token === undefined) {
    const stranger = strangerProblem(request);
    if (stranger !== undefined)
      throw new Refusal(403, stranger, 'start the server with --token-file, and send the token');
    // DNS rebinding: a foreign web page can make this machine's browser send requests to a name that resolves to
    // loopback.
    if (!isLoopbackHost(host)) throw new Refusal(403, 'not by a loopback name', 'ask with http://127.0.0.1:PORT');
    return;
  }
  if (request.url?.split('?', 1)[0] === OPEN_PATH) return;
  const [, given] = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? '') ?? [];
  if (given !== undefined && equalSecrets(given, token)) return;
  throw new Refusal(
    401,
    given === undefined ? 'a token is needed' : 'the token is wrong',
    'send Authorization: Bearer TOKEN',
    {
      'www-authenticate': 'Bearer realm="paybox"',
    },
  );
}
