import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../../../lib/clock.ts';
import { ConfigError, reasonOf } from '../../../lib/errors.ts';
import { parseJson, readBody } from '../../../lib/http-client.ts';
import { createHttpServer } from '../../../lib/http-server.ts';
import { LIMITS } from '../../../protocol/fields.ts';
import { PATHS } from '../../../protocol/http-api.ts';
import { PeerLog } from '../peer-log.ts';
import { recordOf } from './json.ts';

/** How callbacks are authorized (PROTOCOL.md, clause SYN-1). */
export type CallbackAuth =
  | { kind: 'none' }
  | { kind: 'bearer'; token: string }
  | { kind: 'token'; username: string; password: string };

/** Answer of the partner: a status, the documented reply, a 200 of another shape, a redirect, or a closed connection. */
export type CallbackAnswer = number | 'ok' | 'wrong-shape' | 'redirect' | 'closed';

/** A request to the partner's endpoint. */
export interface ReceivedRequest {
  method: string;
  /** Path and query. */
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
  /** Monotonic time of the target's clock. */
  atMs: number;
  /** Undefined until the whole answer was sent. */
  answer: CallbackAnswer | undefined;
}

/** The partner's server. */
export interface CallbackListener {
  /** The callback endpoint. */
  readonly url: string;
  readonly tokenUrl: string;
  /** In the order of arrival, including requests to the token endpoint. */
  readonly requests: readonly ReceivedRequest[];
  /** Sets the answer to every later callback, or to those with this content. */
  answerWith(how: CallbackAnswer, content?: string): void;
  close(): Promise<void>;
}

/** The path of the callback endpoint unless the bench is given another one. */
export const SYNC_PATH = '/bank/api/transaction-sync';
/** Target of the redirect; no request may come here. */
export const ELSEWHERE_PATH = '/elsewhere';
const CONNECTIONS_MAX = 1_024;
const ARRIVED_MAX = 10_000;

/** Throws ConfigError when the address is not free. */
export async function startListener(
  { host, port, path: syncPath = SYNC_PATH }: { host: string; port: number; path?: string },
  clock: Clock,
  auth: CallbackAuth = { kind: 'none' },
): Promise<CallbackListener> {
  const log = new PeerLog<ReceivedRequest>(ARRIVED_MAX);
  let usual: CallbackAnswer = 'ok';
  const byContent = new Map<unknown, CallbackAnswer>();
  let tokens = 0;
  const reply = (response: ServerResponse, request: ReceivedRequest) => {
    const { path, body, headers } = request;
    const answer = (status: number, json: object, more: Record<string, string> = {}) => {
      response.writeHead(status, { 'content-type': 'application/json', ...more });
      response.end(JSON.stringify(json));
    };
    if (path === PATHS.token) {
      const isRight = auth.kind !== 'token' || headers.authorization === basicOf(auth);
      if (!isRight) return answer(401, {});
      tokens += 1;
      return answer(200, { access_token: `bench-${tokens}`, token_type: 'Bearer', expires_in: 300 });
    }
    const { content, transactionid: reftransactionid } = recordOf(parseJson(body));
    const how = byContent.get(content) ?? usual;
    response.once('finish', () => {
      request.answer = how;
    });
    if (how === 'closed') return response.destroy();
    if (how === 'redirect') return answer(302, {}, { location: ELSEWHERE_PATH });
    if (how !== 'ok') return answer(how === 'wrong-shape' ? 200 : how, { status: 'as the bench says' });
    return answer(200, { error: false, errorReason: '000', toastMessage: '', object: { reftransactionid } });
  };
  const handle = (request: IncomingMessage, response: ServerResponse) => {
    readBody(request, LIMITS.httpBodyBytesMax).then(
      (body) => {
        const { method = '', url: path = '', headers } = request;
        const text = body?.toString('utf8') ?? '';
        const it = { method, path, headers, body: text, atMs: clock.monotonicMs(), answer: undefined };
        log.add(it);
        reply(response, it);
      },
      () => response.destroy(),
    );
  };
  const server = createHttpServer(handle, { connectionsMax: CONNECTIONS_MAX });
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => {
      const fix = 'name an address of this machine and a free port';
      reject(new ConfigError(`--callback-listen ${host}:${port}: ${reasonOf(error)}`, fix));
    });
    server.listen(port, host, resolve);
  });
  const address = server.address();
  const at = typeof address === 'object' && address !== null ? address.port : port;
  const origin = `http://${host.includes(':') ? `[${host}]` : host}:${at}`;
  return {
    url: `${origin}${syncPath}`,
    tokenUrl: `${origin}${PATHS.token}`,
    requests: log.arrived,
    answerWith: (how, content) => {
      if (content === undefined) usual = how;
      else byContent.set(content, how);
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Returns the value of an Authorization header. */
export function basicOf({ username, password }: { username: string; password: string }): string {
  return `Basic ${Buffer.from(`${username}:${password}`, 'utf8').toString('base64')}`;
}
