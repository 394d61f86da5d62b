import { readFileSync } from 'node:fs';
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { isIP } from 'node:net';
import type { Clock } from '../../../lib/clock.ts';
import { ConfigError, reasonOf, systemCodeOf } from '../../../lib/errors.ts';
import {
  createHttpServer,
  cutSlowReader,
  hasBody,
  hostnameOf,
  isForeignPage,
  PAGE_POLICY,
  SAFE_HEADERS,
} from '../../../lib/http-server.ts';
import type { Logger } from '../../../lib/log.ts';
import { METRICS_TYPE } from '../../../lib/metrics.ts';
import type { Random } from '../../../lib/random.ts';
import { encodePng } from '../../display/pixels/png.ts';
import { sceneText } from '../../display/text.ts';
import type { BoxApi, Key } from '../contract.ts';
import { type Answer, json, nothing, type PageBranch, plain } from './answer.ts';
import { type Access, type OpenTo, PageGuard } from './guard.ts';
import { StatusStream, statusFor } from './status-stream.ts';

export interface LocalHttpDeps {
  clock: Clock;
  log: Logger;
  random: Random;
  /** Handles further requests after the guard has let them pass. */
  branch: PageBranch;
}

export interface LocalHttpOptions {
  host: string;
  port: number;
  /**
   * The token gives full access, and requests without it have none. If no token is set, other machines see only the
   * screen.
   */
  token?: string | undefined;
}

export interface LocalHttp {
  /** The origin, for example `http://127.0.0.1:8810`. */
  readonly origin: string;
  close(): Promise<void>;
}

const CONNECTIONS_MAX = 64;
const HEADER_BYTES_MAX = 8_192;

const CODE_ON_SCREEN = 'the screen shows an enrolment code, which only people at the box may see';

const KEYS: readonly Key[] = ['dismiss', 'repeat', 'history'];

const SECURITY_HEADERS: OutgoingHttpHeaders = { ...SAFE_HEADERS, 'content-security-policy': PAGE_POLICY };

/**
 * Serves the box's own pages: user interface, `/status`, the screen as picture and text, events, health and metrics.
 * Port 0 picks a free one. Throws ConfigError when the address is not available.
 */
export async function startLocalHttp(
  { host, port, token }: LocalHttpOptions,
  box: BoxApi,
  deps: LocalHttpDeps,
): Promise<LocalHttp> {
  const live = new StatusStream(box, deps);
  const guard = new PageGuard(token, deps.random);
  const routes = routesOf(box, live, guard, deps);
  const handle = (request: IncomingMessage, response: ServerResponse) => {
    try {
      const answer = answerTo(request, response, { boundHost: host, guard, routes, branch: deps.branch });
      if (answer !== undefined) finish(request, response, answer, deps.clock);
    } catch (error) {
      deps.log.error('page-failed', { path: request.url, reason: reasonOf(error) });
      finish(request, response, plain(500, `the box failed to answer: ${reasonOf(error)}`), deps.clock);
    }
  };
  const server = createHttpServer(handle, { connectionsMax: CONNECTIONS_MAX, maxHeaderSize: HEADER_BYTES_MAX });
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(addressError(error, host, port)));
    server.listen(port, host, resolve);
  }).catch((error: unknown) => {
    live.close();
    throw error;
  });
  const address = server.address();
  const taken = typeof address === 'object' && address !== null ? address.port : port;
  return {
    origin: `http://${isIP(host) === 6 ? `[${host}]` : host}:${taken}`,
    close: async () => {
      live.close();
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

type Handler = (request: IncomingMessage, access: Access, response: ServerResponse) => Answer | undefined;

/** One route of the box's pages. */
interface Route {
  method: 'GET' | 'POST';
  path: string;
  openTo: OpenTo;
  /** True for a stream, which has no HEAD. */
  isStream?: true;
  handle: Handler;
}

function routesOf(box: BoxApi, live: StatusStream, guard: PageGuard, { random }: LocalHttpDeps): Route[] {
  const get = (path: string, openTo: OpenTo, handle: Handler): Route => ({ method: 'GET', path, openTo, handle });
  const file = (name: string, type: string) => {
    const body = readFileSync(new URL(`static/${name}`, import.meta.url));
    return () => ({ status: 200, type, body });
  };
  const html = 'text/html; charset=utf-8';
  const script = 'text/javascript; charset=utf-8';
  const pages = { all: file('box.html', html), screen: file('screen.html', html), login: file('login.html', html) };
  /** Anyone may get the screen, except an enrolment code, which is only for people in front of the box. */
  const screen = (path: string, handle: Handler): Route =>
    get(path, ['screen'], (request, access, response) =>
      access.isHere || box.status().enrolment === null ? handle(request, access, response) : plain(403, CODE_ON_SCREEN),
    );
  const login: Route = {
    method: 'POST',
    path: '/login',
    openTo: ['login'],
    handle: (request) => guard.login(request),
  };
  return [
    get('/', ['screen', 'login'], (_request, { open }) => ({ ...pages[open](), status: open === 'login' ? 401 : 200 })),
    get('/box.css', ['screen', 'login'], file('box.css', 'text/css; charset=utf-8')),
    get('/box.js', [], file('box.js', script)),
    get('/screen.js', ['screen'], file('screen.js', script)),
    get('/login.js', ['login'], file('login.js', script)),
    get('/status', [], (_request, access) => json(200, statusFor(box.status(), access.isHere))),
    get('/metrics', [], () => ({ status: 200, type: METRICS_TYPE, body: box.metrics() })),
    get('/healthz', ['screen', 'login'], () => health(box)),
    screen('/screen.txt', () => plain(200, sceneText(box.scene()))),
    screen('/screen.png', pictureOf(box, live, random.uuid())),
    get('/sound.wav', [], () => {
      const sound = box.sound();
      if (sound === undefined) return plain(404, 'the page has no announcement to play yet');
      return { status: 200, type: 'audio/wav', body: sound.wav };
    }),
    {
      ...get('/events', [], (_request, access, response) =>
        live.subscribe(response, SECURITY_HEADERS, access)
          ? undefined
          : { ...plain(503, 'too many pages watch this box'), headers: { 'retry-after': '5' } },
      ),
      isStream: true,
    },
    ...(guard.hasToken ? [login] : []),
    ...KEYS.map((key): Route => {
      const press = () => {
        box.press(key);
        return nothing();
      };
      return { method: 'POST', path: `/keys/${key}`, openTo: [], handle: press };
    }),
  ];
}

/** Returns the handler of the picture on the screen. `runId` tells its pictures from those of another start. */
function pictureOf(box: BoxApi, live: StatusStream, runId: string): Handler {
  let picture: { number: number; png: Uint8Array } | undefined;
  return (request) => {
    const { frame, number } = live.currentFrame();
    if (frame === undefined) return plain(503, noPicture(box));
    const headers = { etag: `"${runId}-${number}"` };
    if (request.headers['if-none-match'] === headers.etag) {
      return { status: 304, type: 'image/png', body: '', headers };
    }
    if (picture?.number !== number) picture = { number, png: encodePng(frame) };
    return { status: 200, type: 'image/png', body: picture.png, headers };
  };
}

interface Pages {
  boundHost: string;
  guard: PageGuard;
  routes: readonly Route[];
  branch: PageBranch;
}

function noPicture(box: BoxApi): string {
  const { ok, reason } = box.status().display;
  return ok ? 'nothing is on the screen yet' : `the display has failed, and what it shows is not known: ${reason}`;
}

/** Returns the answer to a request; undefined for a page that subscribed to events. */
function answerTo(
  request: IncomingMessage,
  response: ServerResponse,
  { boundHost, guard, routes, branch }: Pages,
): Answer | undefined {
  const host = hostnameOf(request);
  // With a token, a foreign host name gives no more access than an address.
  if (host === undefined || (!guard.hasToken && !isOwnHost(host, boundHost))) {
    return plain(403, `the box is not called ${request.headers.host ?? 'nothing'}: use its IP address`);
  }
  if (isForeignPage(request)) return plain(403, 'only the page of the box itself may ask and press keys');
  if (hasBody(request)) return { ...plain(413, 'the box takes no body'), headers: { connection: 'close' } };
  request.resume();
  const [path = '/', query = ''] = (request.url ?? '/').split('?', 2);
  const method = request.method === 'HEAD' ? 'GET' : (request.method ?? '');
  const access = guard.accessOf(request);
  const known = routes.filter((it) => it.path === path);
  const route = known.find((it) => it.method === method);
  const refusal = guard.refusal(route?.openTo ?? [], access);
  if (refusal !== undefined) return refusal;
  if (path === branch.path || path.startsWith(`${branch.path}/`)) return branch.answer({ method, path, query });
  if (route !== undefined && !(route.isStream && request.method === 'HEAD')) {
    return route.handle(request, access, response);
  }
  const [other] = known;
  if (other === undefined) return plain(404, 'not found');
  const allowed = other.method === 'GET' && !other.isStream ? 'GET, HEAD' : other.method;
  return { ...plain(405, `only ${allowed}`), headers: { allow: allowed } };
}

function finish(
  request: IncomingMessage,
  response: ServerResponse,
  { status, type, body, headers }: Answer,
  clock: Clock,
): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const length =
    status === 204 || status === 304 ? {} : { 'content-type': type, 'content-length': Buffer.byteLength(body) };
  response.writeHead(status, { ...SECURITY_HEADERS, ...length, ...headers });
  response.end(request.method === 'HEAD' ? undefined : body);
  void cutSlowReader(response, clock);
}

function health(box: BoxApi): Answer {
  const { display, journal, fault, online } = box.status();
  const reason =
    (display.ok ? undefined : `display ${display.driver}: ${display.reason ?? 'not ok'}`) ??
    (journal.ok ? undefined : `journal: ${journal.reason ?? 'not ok'}`) ??
    (fault === null ? undefined : `${fault.code}: ${fault.reason}`);
  return reason === undefined ? json(200, { ok: true, online }) : json(503, { ok: false, reason });
}

/**
 * Returns whether a host name is this machine's. A page of another site can point its own name to this machine (DNS rebinding) and then act as the box's page. It
 * cannot do so with an IP address, nor with localhost.
 */
function isOwnHost(hostname: string, boundHost: string): boolean {
  return isIP(hostname) !== 0 || hostname === 'localhost' || hostname === boundHost.toLowerCase();
}

function addressError(error: Error, host: string, port: number): ConfigError {
  const option = 'set http.port in the configuration or --box-port';
  if (systemCodeOf(error) === 'EADDRINUSE') {
    return new ConfigError(
      `port ${port} on ${host}, for the box's pages, is in use`,
      `stop what uses it, or ${option}`,
    );
  }
  const fix = `set http.host to an address of this machine, or ${option}`;
  return new ConfigError(`the box's pages cannot be served on ${host}, port ${port}: ${reasonOf(error)}`, fix);
}
