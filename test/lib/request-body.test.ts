import { PassThrough } from 'node:stream';
import type { FastifyRequest } from 'fastify';
import { expect, it } from 'vitest';
import { takeBytes } from '../../src/lib/request-body.ts';
import { keptBytes } from '../support/memory.ts';

const LIMIT = 65_536;

/** A body that comes in these pieces, and what was read of it. */
function read(pieces: readonly Buffer[], headers: Record<string, string> = {}) {
  const payload = new PassThrough();
  const request = { headers, routeOptions: { bodyLimit: LIMIT } } as unknown as FastifyRequest;
  const settled = new Promise<Buffer | number>((resolve) => {
    takeBytes(request, payload, (error, body) => {
      resolve(error === null ? (body ?? Buffer.alloc(0)) : (error as Error & { statusCode: number }).statusCode);
    });
  });
  for (const piece of pieces) payload.write(piece);
  return { payload, settled };
}

const whole = Buffer.from(Array.from({ length: LIMIT }, (_, at) => at % 251));
const inPieces = (bytes: Buffer, size: number) =>
  Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) => bytes.subarray(at * size, (at + 1) * size));

it.each([1, 7, 1_000, LIMIT])('LIM-4 a body in pieces of %i bytes is read as it is, up to the limit', async (size) => {
  const { payload, settled } = read(inPieces(whole, size));
  payload.end();
  expect(whole.equals((await settled) as Buffer)).toBe(true);
  const longer = read([...inPieces(whole, size), Buffer.from('x')]);
  expect(await longer.settled).toBe(413);
});

it('LIM-4 an empty body is empty, and one that is announced as too long is not read', async () => {
  const empty = read([]);
  empty.payload.end();
  expect(await empty.settled).toHaveLength(0);
  expect(await read([], { 'content-length': String(LIMIT + 1) }).settled).toBe(413);
});

it('a body that is cut off is none', async () => {
  const short = read([Buffer.from('abc')], { 'content-length': '4' });
  short.payload.end();
  expect(await short.settled).toBe(400);
  const broken = read([Buffer.from('abc')]);
  broken.payload.destroy(new Error('aborted'));
  expect(await broken.settled).toBe(400);
});

it('THR-41 bodies in pieces of one byte take no more memory than their bytes', async () => {
  const before = keptBytes();
  const bodies = Array.from({ length: 10 }, () => read([]));
  for (const { payload } of bodies) {
    for (let at = 0; at < 60_000; at += 1) payload.write(Buffer.from('a'));
  }
  await new Promise((resolve) => setImmediate(resolve));
  expect(keptBytes() - before).toBeLessThan(5_000_000);
  for (const { payload, settled } of bodies) {
    payload.end();
    expect(await settled).toHaveLength(60_000);
  }
});
