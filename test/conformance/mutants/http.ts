import {
  request as ask,
  createServer,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll } from 'vitest';
import type { Clock } from '../../../src/lib/clock.ts';
import type { Mutant } from '../box-fixture.ts';

/** A box that has given up comes back after this time, so that the run can go on. */
const GIVES_UP_MS = 60_000;
/** Time of the box until silence is taken for an answer: before the box gives its post up (PROTOCOL.md, clause BOX-HTTP-3). */
const UNANSWERED_MS = 4_000;

/** How a proxy between box and gateway makes another box of it. */
interface ProxyChanges {
  /** Other headers of a post. */
  headers?(request: IncomingMessage): OutgoingHttpHeaders;
  /** Called with each post. */
  onPost?(request: IncomingMessage): void;
  /** Called with the stream that the box reads. */
  onStream?(response: ServerResponse): void;
  /** Whether the box has given up: its requests are not sent. */
  hasGivenUp?(): boolean;
  onStatus?(status: number): void;
  /** Waits until a post without an answer is taken for answered, at most until the signal. */
  untilTakenForAnswered?(signal: AbortSignal): Promise<void>;
}

/** Wrong boxes over HTTP (PROTOCOL.md, clause BOX-HTTP). */
export const HTTP_MUTANTS: Record<string, Mutant> = {
  'posts messages as JSON': over({
    breaks: ['BOX-HTTP-2'],
    change: () => ({ headers: () => ({ 'content-type': 'application/json' }) }),
  }),
  'asks for another path': over({
    breaks: ['BOX-HTTP-1'],
    change: (origin) => ({
      onPost: ({ headers: { authorization, 'paybox-session': session } }) => {
        const headers = { authorization, 'paybox-session': session };
        ask(`${origin}/box/v1/else`, { headers, agent: false }, (answer) => answer.resume())
          .on('error', () => undefined)
          .end();
      },
    }),
  }),
  'keeps a stream on which nothing comes': over({
    breaks: ['BOX-HTTP-3'],
    needs: ['slow'],
    change: () => ({
      onStream: (response) => {
        const timer = setInterval(() => response.write(':\n\n'), 1);
        response.on('close', () => clearInterval(timer));
      },
    }),
  }),
  'takes silence for the answer to a post': over({
    breaks: ['BOX-HTTP-3'],
    needs: ['slow'],
    change: (_origin, clock) => ({ untilTakenForAnswered: (signal) => clock.sleep(UNANSWERED_MS, signal) }),
  }),
  'gives up when it is refused': over({
    breaks: ['BOX-HTTP-4'],
    change: (_origin, clock) => {
      let untilMs = 0;
      return {
        hasGivenUp: () => clock.monotonicMs() < untilMs,
        onStatus: (status) => {
          if (status === 401) untilMs = clock.monotonicMs() + GIVES_UP_MS;
        },
      };
    },
  }),
};

interface HttpMutant extends Pick<Mutant, 'breaks' | 'needs'> {
  change(origin: string, clock: Clock): ProxyChanges;
}

function over({ change, ...mutant }: HttpMutant): Mutant {
  return { ...mutant, transport: 'http', through: (origin, clock) => proxyOf(origin, change(origin, clock)) };
}

async function proxyOf(origin: string, changes: ProxyChanges): Promise<string> {
  const server = createServer((request, response) => pass(origin, changes, request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  proxies.push(server);
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function pass(origin: string, changes: ProxyChanges, request: IncomingMessage, response: ServerResponse): void {
  const { method = 'GET', headers, url = '' } = request;
  const isPost = method === 'POST';
  if (changes.hasGivenUp?.() === true) {
    response.destroy();
    return;
  }
  if (isPost) changes.onPost?.(request);
  const changed = isPost ? (changes.headers?.(request) ?? {}) : {};
  const passed = ask(`${origin}${url}`, { method, headers: { ...headers, ...changed }, agent: false });
  const { untilTakenForAnswered } = isPost ? changes : {};
  const answered = new AbortController();
  void untilTakenForAnswered?.(answered.signal).then(() => {
    if (!answered.signal.aborted) response.writeHead(202).end();
  });
  passed.on('response', (answer) => {
    answered.abort();
    changes.onStatus?.(answer.statusCode ?? 0);
    if (response.writableEnded) return;
    response.writeHead(answer.statusCode ?? 500, answer.headers);
    response.flushHeaders();
    if (!isPost) changes.onStream?.(response);
    answer.pipe(response);
    answer.on('error', () => response.destroy());
  });
  passed.on('error', () => {
    answered.abort();
    response.destroy();
  });
  if (untilTakenForAnswered === undefined) response.on('close', () => passed.destroy());
  request.pipe(passed);
}

const proxies: Server[] = [];
afterAll(() => {
  for (const server of proxies) {
    server.close();
    server.closeAllConnections();
  }
});
