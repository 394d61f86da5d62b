import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Clock } from '../../lib/clock.ts';
import { parseJson, readBody } from '../../lib/http-client.ts';
import type { Logger } from '../../lib/log.ts';
import type { Random } from '../../lib/random.ts';
import { equalSecrets } from '../../protocol/checksum.ts';
import { issuesOf } from '../../protocol/codec.ts';
import { LIMITS } from '../../protocol/fields.ts';
import { PATHS, type TransactionSync, transactionSync } from '../../protocol/http-api.ts';
import { webhookProblem } from '../../protocol/webhook.ts';

/** A partner's own server, as small as the documentation asks: a token endpoint and a transaction-sync endpoint. */
export interface SamplePartner {
  /** Where callbacks go. */
  readonly callbackUrl: string;
  readonly tokenUrl: string;
  readonly username: string;
  readonly password: string;
  /** What callbacks must be signed with (Standard Webhooks). */
  readonly signingSecret: string;
  close(): Promise<void>;
}

const SYNC_PATH = '/bank/api/transaction-sync';
/** Reference numbers that are remembered against repetitions. */
const SEEN_MAX = 10_000;

/** Starts the sample partner on a free loopback port; `onPayment` hears each payment once. */
export async function startSamplePartner(deps: {
  clock: Clock;
  random: Random;
  log: Logger;
  onPayment(payment: TransactionSync): void;
}): Promise<SamplePartner> {
  const username = 'gateway';
  const password = deps.random.secret(18);
  const bearer = deps.random.secret(24);
  const signingSecret = `whsec_${Buffer.from(deps.random.secret(32), 'base64url').toString('base64')}`;
  const basic = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
  const seen = new Set<string>();

  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const answer = (status: number, body: object) => {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify(body));
    };
    const refuse = (status: number, reason: string) => {
      deps.log.warn('callback-refused', { status, reason });
      answer(status, { error: true, errorReason: reason, toastMessage: '', object: null });
    };
    const authorization = request.headers.authorization ?? '';
    const body = await readBody(request, LIMITS.httpBodyBytesMax);
    if (body === undefined) return refuse(413, 'body too large');
    const text = body.toString('utf8');
    if (request.method === 'POST' && request.url === PATHS.token) {
      if (!equalSecrets(authorization, basic)) return refuse(401, 'wrong credentials');
      return answer(200, { access_token: bearer, token_type: 'Bearer', expires_in: 300 });
    }
    if (request.method !== 'POST' || request.url !== SYNC_PATH) return refuse(404, 'not found');
    if (!equalSecrets(authorization, `Bearer ${bearer}`)) return refuse(401, 'wrong token');
    const problem = webhookProblem(signingSecret, request.headers, text, deps.clock.wallMs());
    if (problem !== undefined) return refuse(401, problem);
    const parsed = transactionSync.safeParse(parseJson(text));
    if (!parsed.success) return refuse(400, issuesOf(parsed.error));
    const { referencenumber, transactionid } = parsed.data;
    if (!seen.has(referencenumber)) {
      seen.add(referencenumber);
      const [oldest] = seen;
      if (seen.size > SEEN_MAX && oldest !== undefined) seen.delete(oldest);
      deps.onPayment(parsed.data);
    }
    answer(200, { error: false, errorReason: '000', toastMessage: '', object: { reftransactionid: transactionid } });
  };
  const server = createServer((request, response) => {
    handle(request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    callbackUrl: `${origin}${SYNC_PATH}`,
    tokenUrl: `${origin}${PATHS.token}`,
    username,
    password,
    signingSecret,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
