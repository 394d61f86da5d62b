import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { BoxClient } from '../../src/bench/engine/clients/box.ts';
import { httpTransport } from '../../src/device/agent/transports/http.ts';
import { reasonOf } from '../../src/lib/errors.ts';
import { askHttp } from '../../src/lib/http-client.ts';
import { BOX_CHALLENGE_HEADER, BOX_PATHS } from '../../src/protocol/http-api.ts';
import { IDENTITY } from '../support/fake-gateway.ts';
import { lightHttp } from '../support/light-transport.ts';
import { eventually } from '../support/net.ts';
import { transportIo } from '../support/transport-io.ts';

const CHUNK = 'x'.repeat(65_536);
/** What the buffers of the system may take of a stream whose reader has gone. */
const SYSTEM_BYTES_MAX = 16_000_000;
/** A client that would read on gets so much. */
const ENDLESS_BYTES = 250_000_000;
const TIMEOUT_MS = 60_000;

/** A server whose answers at some paths go on for 250 MB; `begin` sends what comes before. */
async function endlessServer(begin: (request: IncomingMessage, response: ServerResponse) => boolean) {
  const it = { url: '', bytes: 0, closed: 0 };
  const server = createServer((request, response) => {
    request.resume();
    response.on('error', () => undefined);
    if (!begin(request, response)) return;
    response.once('close', () => {
      it.closed += 1;
    });
    const send = (error?: Error | null) => {
      if (error || response.destroyed || it.bytes > ENDLESS_BYTES) return;
      it.bytes += CHUNK.length;
      response.write(CHUNK, send);
    };
    send();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  it.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return it;
}

function streamHead(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream', [BOX_CHALLENGE_HEADER]: 'challenge' });
}

async function openBox(transport: typeof httpTransport, url: string) {
  const options = httpTransport.options.parse({ url });
  const connection = await transport.open(options, transportIo(), AbortSignal.timeout(TIMEOUT_MS));
  onTestFinished(() => connection.close());
  return connection;
}

async function whyItEnds(incoming: AsyncIterable<unknown>): Promise<string> {
  try {
    for await (const _ of incoming);
    return '';
  } catch (error) {
    return reasonOf(error);
  }
}

const EVENTS = [
  ['a line', ''],
  ['the data of an event', 'data: '],
  ['the name of an event', 'event: '],
  ['a comment', ': '],
] as const;

describe.each(EVENTS)('a stream with %s that does not end', (_what, begin) => {
  const endless = () =>
    endlessServer((_request, response) => {
      streamHead(response);
      response.write(begin);
      return true;
    });

  it.each([
    ['a box', httpTransport],
    ['a light box', lightHttp],
  ])('THR-41 an endless stream is left by %s, which says so', async (_who, transport) => {
    const server = await endless();
    const { incoming } = await openBox(transport, server.url);
    expect(await whyItEnds(incoming)).toMatch(/sent an event of more than 17408 characters/);
    await eventually('the end', () => server.closed === 1);
    expect(server.bytes).toBeLessThan(SYSTEM_BYTES_MAX);
  });

  it('THR-41 an endless stream is left by the bench, which reads the status of a box', async () => {
    const server = await endless();
    const box = new BoxClient(server.url, IDENTITY);
    await expect(box.watch(() => undefined, AbortSignal.timeout(TIMEOUT_MS))).rejects.toThrow(/max buffer size/);
    await eventually('the end', () => server.closed === 1);
    expect(server.bytes).toBeLessThan(SYSTEM_BYTES_MAX);
  });
});

it('THR-41 a box reads only the beginning of an answer to its message', async () => {
  const server = await endlessServer((request, response) => {
    if (request.url === BOX_PATHS.stream) streamHead(response);
    else response.writeHead(202);
    response.flushHeaders();
    return request.url !== BOX_PATHS.stream;
  });
  const connection = await openBox(httpTransport, server.url);
  await connection.send({
    ...{ v: 1, id: randomUUID(), sentAtMs: 1, sessionId: randomUUID() },
    ...{ type: 'shown', pushId: randomUUID() },
  });
  await eventually('the end', () => server.closed === 1);
  expect(server.bytes).toBeLessThan(SYSTEM_BYTES_MAX);
});

it('THR-41 a client reads no more of an answer than it asks for', async () => {
  const server = await endlessServer(() => true);
  await expect(askHttp(server.url, {}, { timeoutMs: TIMEOUT_MS, bytesMax: 100_000 })).rejects.toThrow('100000 bytes');
  await eventually('the end', () => server.closed === 1);
  expect(server.bytes).toBeLessThan(SYSTEM_BYTES_MAX);
});
