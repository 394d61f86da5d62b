import type { ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createServer } from '../../lib/http.ts';
import { parseJson, readBody } from '../../lib/http-client.ts';
import { LIMITS } from '../../protocol/fields.ts';
import { transactionSync } from '../../protocol/http-api.ts';

/** How a partner's server answers a callback. */
export type PartnerAnswer = number | 'ok' | 'wrong-shape' | 'never';

/** A callback as the partner's server received it. */
export interface ReceivedCallback {
  /** Undefined for a body that is no transaction-sync payload. */
  transactionId: string | undefined;
  body: string;
  answered: PartnerAnswer;
}

/** Callbacks that are kept. */
const RECEIVED_MAX = 10_000;

/** A partner's server that answers as a scenario says. */
export interface PartnerServer {
  readonly url: string;
  /** In the order in which they came. */
  readonly received: readonly ReceivedCallback[];
  /** The next `times` callbacks are answered so; what was said before is done first. */
  answer(how: PartnerAnswer, times: number): void;
  onReceived(listener: (callback: ReceivedCallback) => void): void;
  close(): Promise<void>;
}

/** Starts one on a free loopback port. */
export async function startPartnerServer(): Promise<PartnerServer> {
  const received: ReceivedCallback[] = [];
  const answers: PartnerAnswer[] = [];
  let listener: (callback: ReceivedCallback) => void = () => undefined;
  const server = createServer((request, response) => {
    readBody(request, LIMITS.httpBodyBytesMax).then(
      (body) => {
        if (body === undefined) {
          response.destroy();
          return;
        }
        const parsed = transactionSync.safeParse(parseJson(body));
        const answered = answers.shift() ?? (parsed.success ? 'ok' : 400);
        const callback = { transactionId: parsed.data?.transactionid, body: body.toString('utf8'), answered };
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

function reply(response: ServerResponse, { answered, transactionId }: ReceivedCallback): void {
  if (answered === 'never') return;
  const processed = { error: false, errorReason: '000', toastMessage: '', object: { reftransactionid: transactionId } };
  const body = answered === 'ok' ? processed : { status: 'as the scenario says' };
  response.writeHead(typeof answered === 'number' ? answered : 200, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}
