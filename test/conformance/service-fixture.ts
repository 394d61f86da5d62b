import { createServer, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Writable } from 'node:stream';
import { screenProbe } from '../../src/bench/probes.ts';
import { emulatedStarter } from '../../src/commands/bench-emulated.ts';
import { type CheckResult, runChecks } from '../../src/conformance/check.ts';
import { SERVICE_CHECKS } from '../../src/conformance/service/checks/all.ts';
import { type EmulatedServiceChanges, openEmulatedService } from '../../src/conformance/service/emulated-service.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { createLogger } from '../../src/lib/log.ts';
import { seededRandom } from '../../src/lib/seeded.ts';

const SEED = 7;
const log = createLogger(new Writable({ write: (_line, _encoding, done) => done() }), systemClock, 'json');

/** The verdicts on our own gateway, with something about it changed. */
export async function judgedOwn(changes: EmulatedServiceChanges, strict = true): Promise<CheckResult[]> {
  const random = seededRandom(SEED);
  const starter = emulatedStarter({ transport: 'http', probe: screenProbe, random, log });
  const { subject, close } = await openEmulatedService(starter, random, changes);
  try {
    const lacks = subject.lacks.bind(subject);
    const signal = new AbortController().signal;
    return await runChecks(SERVICE_CHECKS, subject, { lacks, strict, time: starter.time, signal });
  } finally {
    await close();
  }
}

/** The clauses with a check that came out so. */
export function clausesOf(results: readonly CheckResult[], outcome: CheckResult['outcome']): string[] {
  return [...new Set(results.filter((it) => it.outcome === outcome).map(({ clause }) => clause))].sort();
}

/** A request or an answer on its way; a lie changes it in place. */
export interface Passing {
  path: string;
  method: string;
  headers: Record<string, string>;
  body: string;
  status: number;
}

export interface Lies {
  /** Changes the request; an answer that it returns is given at once. */
  request?(request: Passing): Partial<Passing> | undefined;
  answer?(answer: Passing, request: Passing): void;
  /** Whether a message to a box goes through, by its payload. */
  isHeard?(message: string): boolean;
}

/** A server that answers what another one does, but for the lies. */
export async function liar(origin: string, lies: Lies): Promise<{ origin: string; close(): void }> {
  const server = createServer(async (incoming, outgoing) => {
    try {
      const request = await passing(incoming);
      const hosts = incoming.rawHeaders.filter((it, index) => index % 2 === 0 && it.toLowerCase() === 'host').length;
      // What the real one answers to it, which a client cannot send.
      const given = hosts > 1 ? { status: 400 } : lies.request?.(request);
      if (given !== undefined) {
        outgoing.writeHead(given.status ?? 200, { 'content-type': 'application/json' });
        outgoing.end(given.body ?? '');
        return;
      }
      const { method, headers, body, path } = request;
      const ended = new AbortController();
      outgoing.once('close', () => ended.abort());
      const response = await fetch(`${origin}${path}`, {
        method,
        headers,
        redirect: 'manual',
        signal: ended.signal,
        ...(method === 'GET' || body === '' ? {} : { body }),
      });
      if (response.headers.get('content-type')?.startsWith('text/event-stream')) {
        outgoing.writeHead(response.status, Object.fromEntries(response.headers));
        for await (const event of eventsOf(response)) if (isPassed(event, lies)) outgoing.write(`${event}\n\n`);
        outgoing.end();
        return;
      }
      const passed = { ...request, status: response.status, headers: headersOf(response), body: await response.text() };
      lies.answer?.(passed, request);
      outgoing.writeHead(passed.status, passed.headers);
      outgoing.end(passed.body);
    } catch {
      outgoing.destroy();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

async function passing(incoming: IncomingMessage): Promise<Passing> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  const headers = sendable(incoming.headers);
  return {
    path: incoming.url ?? '',
    method: incoming.method ?? '',
    headers,
    body: Buffer.concat(chunks).toString('utf8'),
    status: 0,
  };
}

const HOP_BY_HOP = new Set(['host', 'connection', 'content-length', 'transfer-encoding', 'keep-alive', 'expect']);

function sendable(headers: IncomingHttpHeaders): Record<string, string> {
  const entries = Object.entries(headers).flatMap(([name, value]): [string, string][] =>
    typeof value === 'string' && !HOP_BY_HOP.has(name) ? [[name, value]] : [],
  );
  return Object.fromEntries(entries);
}

function headersOf(response: Response): Record<string, string> {
  const entries = [...response.headers].filter(([name]) => !HOP_BY_HOP.has(name) && name !== 'content-encoding');
  return Object.fromEntries(entries);
}

async function* eventsOf(response: Response): AsyncIterable<string> {
  let rest = '';
  for await (const text of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    const events = (rest + text).split('\n\n');
    rest = events.pop() ?? '';
    yield* events;
  }
}

function isPassed(event: string, { isHeard }: Lies): boolean {
  if (isHeard === undefined || !event.startsWith('data: ')) return true;
  return isHeard(Buffer.from(event.split('.')[1] ?? '', 'base64url').toString('utf8'));
}
