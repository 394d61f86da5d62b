import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import Fastify, { type FastifyError, type FastifyInstance, type FastifyRequest } from 'fastify';
import { mediaTypeOf, UnreadableBody } from '../../lib/bodies.ts';
import { Callers } from '../../lib/callers.ts';
import { type Clock, withDeadline } from '../../lib/clock.ts';
import { reasonOf, systemCodeOf } from '../../lib/errors.ts';
import {
  createHttpServer,
  cutSlowReader,
  hostnameOf,
  NO_JSON_SCHEMAS,
  ResponseScheduler,
  SAFE_HEADERS,
} from '../../lib/http-server.ts';
import type { Logger } from '../../lib/log.ts';
import { acceptProxyHeaders } from '../../lib/proxy-protocol.ts';
import { takeBytes } from '../../lib/request-body.ts';
import { LIMITS } from '../../protocol/fields.ts';
import { PATHS } from '../../protocol/http-api.ts';
import { addressOf, nameCaller } from '../access/carried.ts';
import { answerRefusal, pathOf } from '../access/requests.ts';
import { isPlainPath, isPlainQuery, plainTarget } from './target.ts';

/** The server accepts this many connections, of boxes, partners and pages together. */
const CONNECTIONS_MAX = 4_096;
const PARAM_CHARS_MAX = 128;
/** Matches the address of a hook, also with slashes too many (PROTOCOL.md, clause SRC-1). */
const HOOK = /^\/+hooks\//;
/** A closing server waits this long for its answers. */
const ANSWER_TIMEOUT_MS = 500;
/** Answers longer than this are sent one after the other. */
const LONG_ANSWER_BYTES = 65_536;

/** The proxies in front of a server (PROTOCOL.md, clauses LIM-8 and LIM-9). */
export interface Proxies {
  trustedProxies: readonly string[];
  proxyProtocol: boolean;
}

/**
 * Makes the HTTP server without routes. With a certificate and its key (PEM) it answers over TLS only. Handlers get
 * bodies as bytes, and only `application/json` within the limit. Failures are answered by PROTOCOL.md, clause ERR.
 */
export function createApp(
  log: Logger,
  clock: Clock,
  tls?: { cert?: Buffer; key?: Buffer },
  proxies?: Proxies,
): FastifyInstance {
  const callers = new Callers(proxies?.trustedProxies);
  const app = Fastify({
    logger: false,
    schemaController: NO_JSON_SCHEMAS,
    bodyLimit: LIMITS.httpBodyBytesMax,
    serverFactory: (handler) => createHttpServer(handler, { connectionsMax: CONNECTIONS_MAX, tls, callers }),
    forceCloseConnections: true,
    // While the gateway closes, it still answers by the protocol: the boxes are offline.
    return503OnClosing: false,
    exposeHeadRoutes: false,
    rewriteUrl: ({ url = '', headers }) => {
      const target = plainTarget(url, headers.host);
      return HOOK.test(target) ? target.replaceAll(/\/{2,}/g, '/') : target;
    },
    routerOptions: { maxParamLength: PARAM_CHARS_MAX },
    // The default handler would log the whole URL, with its query.
    frameworkErrors: (_error, request, reply) => {
      answerRefusal(request, reply, log, { code: 'E46', reason: 'malformed path' }, 404);
    },
    clientErrorHandler: (error, socket) => answerInvalidRequest(error, socket, log),
  });
  nameCallers(app, callers);
  guardAnswers(app, clock, log);
  takeBodiesAsBytes(app);
  answerUnknownPaths(app, log);
  app.setErrorHandler((error: FastifyError, request, reply) => {
    const status = error.statusCode ?? 500;
    if (status === 413 || status === 415) {
      const reason = error instanceof UnreadableBody ? reasonOf(error) : bodyProblem(request, status);
      return answerRefusal(request, reply, log, { code: 'E46', reason }, status);
    }
    if (status >= 400 && status < 500) {
      return answerRefusal(request, reply, log, { code: 'E46', reason: reasonOf(error) });
    }
    // The gateway is only not ready yet, so nothing is wrong.
    if (status === 503) return answerRefusal(request, reply, log, { code: 'E05', reason: reasonOf(error) }, status);
    log.error('request-failed', { path: pathOf(request), code: 'E05', reason: reasonOf(error) });
    return reply.code(500).send({ status: 'FAILED', message: 'E05' });
  });
  if (proxies?.proxyProtocol === true) {
    const endWaiting = acceptProxyHeaders(app.server, 'http', { callers, clock, log });
    app.addHook('preClose', async () => endWaiting());
  }
  return app;
}

/**
 * Counts each request that a trusted proxy has passed on as one of its caller. Runs before anything else sees the
 * request.
 */
function nameCallers(app: FastifyInstance, callers: Callers): void {
  app.server.prependListener('request', (request) => {
    const address = callers.ofPassedOn(request);
    if (address !== undefined) nameCaller(request, address);
  });
}

/** Answers bytes that are not a complete request, and closes the connection. */
function answerInvalidRequest(error: Error, socket: Socket, log: Logger): void {
  const isLate = systemCodeOf(error) === 'ERR_HTTP_REQUEST_TIMEOUT';
  const reason = isLate ? 'the request did not come in time' : `not HTTP: ${reasonOf(error)}`;
  const line = isLate ? '408 Request Timeout' : '400 Bad Request';
  // A proxy resets connections that it no longer needs. Nobody would read a refusal there.
  if (systemCodeOf(error) === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  log.warn('request-refused', { status: isLate ? 408 : 400, code: 'E46', reason });
  const body = JSON.stringify({ status: 'FAILED', message: 'E46' });
  const head = `content-type: application/json\r\ncontent-length: ${body.length}\r\nconnection: close`;
  if (socket.writable) socket.write(`HTTP/1.1 ${line}\r\n${head}\r\n\r\n${body}`);
  socket.destroySoon();
}

/**
 * Sets safe headers on every answer, requires one legal Host and a plain query, and limits clients that read slowly.
 */
function guardAnswers(app: FastifyInstance, clock: Clock, log: Logger): void {
  app.addHook('onRequest', async (request, reply) => {
    // Set on the raw response, so that streams have them too.
    for (const [name, value] of Object.entries(SAFE_HEADERS)) reply.raw.setHeader(name, value ?? '');
    const { host } = request.headers;
    const isOneHost = host === undefined || hostnameOf(request.raw) !== undefined;
    if (!isOneHost || !(request.url.startsWith('/') || request.url.startsWith(`http://${host}/`))) {
      reply.header('connection', 'close');
      return answerRefusal(request, reply, log, { code: 'E46', reason: 'Host is not one legal name' });
    }
    if (isPlainQuery(request.url)) return;
    return answerRefusal(request, reply, log, { code: 'E46', reason: 'query: expected no control characters' });
  });
  const turns = new ResponseScheduler();
  app.addHook('onSend', async (request, reply, payload) => {
    void cutSlowReader(reply.raw, clock);
    const bytes = typeof payload === 'string' || Buffer.isBuffer(payload) ? Buffer.byteLength(payload) : 0;
    // A pipelined answer has no socket yet: Node waits until the earlier ones are read.
    const isFirst = reply.raw.socket !== null;
    if (bytes > LONG_ANSWER_BYTES && isFirst) await turns.next(bytes, addressOf(request));
  });
}

function takeBodiesAsBytes(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', takeBytes);
  app.addContentTypeParser('*', (_request, _payload, done) => {
    done(Object.assign(new Error('unsupported media type'), { statusCode: 415 }));
  });
}

function bodyProblem(request: FastifyRequest, status: 413 | 415): string {
  if (status === 415) return `the body is ${mediaTypeOf(request.headers) ?? 'of no type'}, not application/json`;
  return `the body is longer than ${request.routeOptions.bodyLimit} bytes`;
}

/** Answers 404, or 405 if another method exists (PROTOCOL.md, clause ERR-2), before it reads the body. */
function answerUnknownPaths(app: FastifyInstance, log: Logger): void {
  const routes: { pattern: RegExp; methods: string[] }[] = [];
  app.addHook('onRoute', ({ url, method }) => {
    const pattern = new RegExp(`^${url.replaceAll(/[.]/g, '\\$&').replaceAll(/:\w+/g, '[^/]+').replace(/\*$/, '.*')}$`);
    routes.push({ pattern, methods: [method].flat() });
  });
  app.addHook('onRequest', async (request, reply) => {
    const path = pathOf(request);
    const isPlain = isPlainPath(path);
    if (isPlain && !request.is404) return;
    const allowed = !isPlain
      ? []
      : [...new Set(routes.filter((it) => it.pattern.test(path)).flatMap((it) => it.methods))];
    if (allowed.length === 0) {
      const single = path.replaceAll(/\/{2,}/g, '/').replace(/(?<=.)\/$/, '');
      const isKnown = isPlain && single !== path && routes.some((it) => it.pattern.test(single));
      return answerRefusal(
        request,
        reply,
        log,
        { code: 'E46', reason: isKnown ? slashProblem(path, single) : 'unknown path' },
        404,
      );
    }
    reply.header('allow', allowed.join(', '));
    const reason = `wrong method: expected ${allowed.join(' or ')}`;
    return answerRefusal(request, reply, log, { code: 'E46', reason }, 405);
  });
}

/** Paths that a caller appends to the base address of the service. */
const BEHIND_BASE: readonly string[] = Object.values(PATHS);

/** Returns which slash of a path is one too many. Says of a base address that ends in a slash that it should not. */
function slashProblem(path: string, single: string): string {
  const at = path.indexOf('//');
  if (at === -1 || at === path.length - 2) {
    return `unknown path: the slash at its end is too many: expected ${single}`;
  }
  const before = path.slice(0, at);
  const isAfterBase = at === 0 || BEHIND_BASE.includes(single.slice(before.length));
  const expected = isAfterBase ? 'a base address without a slash at its end' : single;
  return `unknown path: a slash too many after ${before || 'the host'}: expected ${expected}`;
}

/**
 * Makes a closing server answer the requests that it has received, and accept no new connections. It does not wait for
 * requests that are still being sent.
 */
export function answerBeforeClosing(
  app: FastifyInstance,
  clock: Clock,
  {
    withinMs = ANSWER_TIMEOUT_MS,
    isAwaited = () => true,
  }: { withinMs?: number; isAwaited?(path: string): boolean } = {},
): void {
  const unanswered = new Set<ServerResponse>();
  const answered = Promise.withResolvers<void>();
  let closing = false;
  const settle = () => {
    if (closing && unanswered.size === 0) answered.resolve();
  };
  app.addHook('preHandler', async (request, { raw }) => {
    if (!isAwaited(pathOf(request))) return;
    unanswered.add(raw);
    raw.once('close', () => {
      unanswered.delete(raw);
      settle();
    });
  });
  app.addHook('preClose', async () => {
    app.server.close();
    closing = true;
    settle();
    await withDeadline(clock, withinMs, answered.promise);
  });
}
