import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Clock } from '../../../lib/clock.ts';
import { parseJson, readBody } from '../../../lib/http-client.ts';
import { createHttpServer } from '../../../lib/http-server.ts';
import type { Logger } from '../../../lib/log.ts';
import type { Random } from '../../../lib/random.ts';
import { equalSecrets } from '../../../protocol/checksum.ts';
import { issuesOf } from '../../../protocol/codec.ts';
import { LIMITS } from '../../../protocol/fields.ts';
import { PATHS, type TransactionSync, transactionSync } from '../../../protocol/http-api.ts';
import { webhookProblem } from '../../../protocol/webhook.ts';

/** How the server answers a callback: by a status, or in one of these ways. */
export type PartnerAnswer = number | 'ok' | 'wrong-shape' | 'never';

export interface ReceivedCallback {
  /** The transaction id; undefined when the body is not a transaction-sync payload. */
  transactionId: string | undefined;
  body: string;
  answered: PartnerAnswer;
}

type OnReceived = (callback: ReceivedCallback, payment: TransactionSync | undefined) => void;

/** A partner's server that receives callbacks on a free loopback port. */
export interface PartnerServer {
  /** The URL for callbacks. */
  readonly url: string;
  /** The callbacks in their order of arrival. */
  readonly received: readonly ReceivedCallback[];
  /** Queues this answer for `times` callbacks, after the answers queued before. */
  answer(how: PartnerAnswer, times: number): void;
  onReceived(listener: OnReceived): void;
  /** Forgets all callbacks and queued answers. */
  forget(): void;
  close(): Promise<void>;
}

/** Accepts callbacks only with its token and a valid signature. */
export interface GuardedPartnerServer extends PartnerServer {
  readonly tokenUrl: string;
  readonly username: string;
  readonly password: string;
  /** The key of the callbacks' signatures (Standard Webhooks). */
  readonly signingSecret: string;
}

interface Reply {
  status: number;
  body: object;
}

/** Returns the reply that rejects a request; undefined accepts it as a callback. */
type Guard = (request: IncomingMessage, body: string) => Reply | undefined;

const SYNC_PATH = '/bank/api/transaction-sync';
/** Several gateways may send callbacks at the same time. */
const CONNECTIONS_MAX = 1_024;
const RECEIVED_MAX = 10_000;
/** The server remembers this many reference numbers, so a repeated callback counts once. */
const REFERENCES_MAX = 10_000;

/** Starts a server that accepts callbacks without a check. */
export function startPartnerServer(): Promise<PartnerServer> {
  return serve(() => undefined);
}

/** Starts a server that follows the service specification for partners. Calls `onPayment` once for each payment. */
export async function startGuardedPartnerServer(deps: {
  clock: Clock;
  random: Random;
  log: Logger;
  onPayment(payment: TransactionSync): void;
}): Promise<GuardedPartnerServer> {
  const username = 'gateway';
  const password = deps.random.secret(18);
  const bearer = deps.random.secret(24);
  const signingSecret = `whsec_${Buffer.from(deps.random.secret(32), 'base64url').toString('base64')}`;
  const basic = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
  const refuse = (status: number, reason: string): Reply => {
    deps.log.warn('callback-refused', { status, reason });
    return refusal(status, reason);
  };
  const server = await serve((request, body) => {
    const { authorization = '' } = request.headers;
    if (request.method === 'POST' && request.url === PATHS.token) {
      if (!equalSecrets(authorization, basic)) return refuse(401, 'wrong credentials');
      return { status: 200, body: { access_token: bearer, token_type: 'Bearer', expires_in: 300 } };
    }
    if (request.method !== 'POST' || request.url !== SYNC_PATH) return refuse(404, 'not found');
    if (!equalSecrets(authorization, `Bearer ${bearer}`)) return refuse(401, 'wrong token');
    const problem = webhookProblem(signingSecret, request.headers, body, deps.clock.wallMs());
    if (problem !== undefined) return refuse(401, problem);
    const { error } = transactionSync.safeParse(parseJson(body));
    return error === undefined ? undefined : refuse(400, issuesOf(error));
  });
  const references = new Set<string>();
  server.onReceived((_callback, payment) => {
    if (payment === undefined || references.has(payment.referencenumber)) return;
    references.add(payment.referencenumber);
    const [oldest] = references;
    if (references.size > REFERENCES_MAX && oldest !== undefined) references.delete(oldest);
    deps.onPayment(payment);
  });
  return { ...server, tokenUrl: server.url.replace(SYNC_PATH, PATHS.token), username, password, signingSecret };
}

async function serve(guard: Guard): Promise<PartnerServer> {
  const received: ReceivedCallback[] = [];
  const answers: PartnerAnswer[] = [];
  let listener: OnReceived = () => undefined;
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const bytes = await readBody(request, LIMITS.httpBodyBytesMax);
    if (bytes === undefined) return send(response, refusal(413, 'body too large'));
    const body = bytes.toString('utf8');
    const guarded = guard(request, body);
    if (guarded !== undefined) return send(response, guarded);
    const { data: payment } = transactionSync.safeParse(parseJson(body));
    const answered = answers.shift() ?? (payment === undefined ? 400 : 'ok');
    const callback = { transactionId: payment?.transactionid, body, answered };
    if (received.length < RECEIVED_MAX) received.push(callback);
    listener(callback, payment);
    if (answered !== 'never') send(response, replyTo(callback));
  };
  const answer = (request: IncomingMessage, response: ServerResponse) => {
    handle(request, response).catch(() => response.destroy());
  };
  const server = createHttpServer(answer, { connectionsMax: CONNECTIONS_MAX });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${SYNC_PATH}`,
    received,
    answer: (how, times) => void answers.push(...Array.from({ length: times }, () => how)),
    onReceived: (it) => {
      listener = it;
    },
    forget: () => {
      received.length = 0;
      answers.length = 0;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function replyTo({ answered, transactionId }: ReceivedCallback): Reply {
  if (answered !== 'ok') {
    return { status: typeof answered === 'number' ? answered : 200, body: { status: 'as the scenario says' } };
  }
  const object = { reftransactionid: transactionId };
  return { status: 200, body: { error: false, errorReason: '000', toastMessage: '', object } };
}

function refusal(status: number, reason: string): Reply {
  return { status, body: { error: true, errorReason: reason, toastMessage: '', object: null } };
}

function send(response: ServerResponse, { status, body }: Reply): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}
