import { createServer, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type CheckResult, runChecks } from '../../src/bench/judges/check.ts';
import { SERVICE_CHECKS } from '../../src/bench/judges/service/checks/all.ts';
import { type EmulatedServiceChanges, openEmulatedService } from '../../src/bench/judges/service/emulated-service.ts';
import { emulatedStarter } from '../../src/commands/actions/bench-emulated.ts';
import { seededRandom } from '../../src/lib/random.ts';
import { quietLog } from '../support/kept-log.ts';

const SEED = 7;
const log = quietLog();

/** Judges the emulated gateway, with changes, by every check or by some. */
export async function judgeEmulated(
  changes: EmulatedServiceChanges,
  { strict = true, checks = SERVICE_CHECKS } = {},
): Promise<CheckResult[]> {
  const random = seededRandom(SEED);
  const starter = emulatedStarter({ random, log });
  const { subject, close } = await openEmulatedService(starter, random, changes);
  try {
    const lacks = subject.lacks.bind(subject);
    const signal = new AbortController().signal;
    return await runChecks(checks, subject, { lacks, strict, time: starter.time, signal });
  } finally {
    await close();
  }
}

/** The clauses with a check of this outcome. */
export function clausesOf(results: readonly CheckResult[], outcome: CheckResult['outcome']): string[] {
  return [...new Set(results.filter((it) => it.outcome === outcome).map(({ clause }) => clause))].sort();
}

/** A request or an answer; tampering changes it in place. */
export interface Exchange {
  path: string;
  method: string;
  headers: Record<string, string>;
  body: string;
  status: number;
}

export interface Tampering {
  /** Changes the request; an answer that it returns replaces that of the server. */
  request?(request: Exchange): Partial<Exchange> | undefined;
  answer?(answer: Exchange, request: Exchange): void;
  /** Whether a message to a box passes, by its payload. */
  passesEvent?(message: string): boolean;
}

/** A proxy that tampers with what passes. */
export async function tamperingProxy(origin: string, tampering: Tampering): Promise<{ origin: string; close(): void }> {
  const server = createServer(async (incoming, outgoing) => {
    try {
      const request = await exchange(incoming);
      const hosts = incoming.rawHeaders.filter((it, index) => index % 2 === 0 && it.toLowerCase() === 'host').length;
      // fetch cannot send two Host headers: this is the answer of a real gateway.
      const given = hosts > 1 ? { status: 400 } : tampering.request?.(request);
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
        for await (const event of eventsOf(response)) if (isPassed(event, tampering)) outgoing.write(`${event}\n\n`);
        outgoing.end();
        return;
      }
      const passed = { ...request, status: response.status, headers: headersOf(response), body: await response.text() };
      tampering.answer?.(passed, request);
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

async function exchange(incoming: IncomingMessage): Promise<Exchange> {
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

function isPassed(event: string, { passesEvent }: Tampering): boolean {
  if (passesEvent === undefined || !event.startsWith('data: ')) return true;
  return passesEvent(Buffer.from(event.split('.')[1] ?? '', 'base64url').toString('utf8'));
}
