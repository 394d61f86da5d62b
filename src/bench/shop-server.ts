import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createServer } from '../lib/http.ts';
import { LIMITS } from '../protocol/fields.ts';
import { transactionSync } from '../protocol/http-api.ts';

/** How a partner's server answers a callback. */
export type ShopAnswer = number | 'ok' | 'wrong-shape' | 'never';

/** A callback as the partner's server received it. */
export interface Received {
  /** Undefined for a body that is no transaction-sync payload. */
  transactionId: string | undefined;
  body: string;
  answered: ShopAnswer;
}

/** Callbacks that are kept. */
const RECEIVED_MAX = 10_000;

/** A partner's server that answers as a scenario says. */
export interface ShopServer {
  readonly url: string;
  /** In the order in which they came. */
  readonly received: readonly Received[];
  /** The next `times` callbacks are answered so; what was said before is done first. */
  answer(how: ShopAnswer, times: number): void;
  onReceived(listener: (callback: Received) => void): void;
  close(): Promise<void>;
}

/** Starts one on a free loopback port. */
export async function startShopServer(): Promise<ShopServer> {
  const received: Received[] = [];
  const answers: ShopAnswer[] = [];
  let listener: (callback: Received) => void = () => undefined;
  const server = createServer((request, response) => {
    bodyOf(request).then(
      (body) => {
        const parsed = transactionSync.safeParse(parseJson(body));
        const answered = answers.shift() ?? (parsed.success ? 'ok' : 400);
        const callback = { transactionId: parsed.data?.transactionid, body, answered };
        if (received.length < RECEIVED_MAX) received.push(callback);
        listener(callback);
        reply(response, callback);
      },
      () => response.destroy(),
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/bank/api/transaction-sync`,
    received,
    answer: (how, times) => {
      for (let i = 0; i < times; i += 1) answers.push(how);
    },
    onReceived: (heard) => {
      listener = heard;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function reply(response: ServerResponse, { answered, transactionId }: Received): void {
  if (answered === 'never') return;
  const processed = { error: false, errorReason: '000', toastMessage: '', object: { reftransactionid: transactionId } };
  const body = answered === 'ok' ? processed : { status: 'as the scenario says' };
  response.writeHead(typeof answered === 'number' ? answered : 200, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > LIMITS.httpBodyBytesMax) throw new Error('the body is too large');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
