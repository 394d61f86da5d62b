import type { FastifyRequest } from 'fastify';
import { decompressed } from './bodies.ts';
import { CollectedBytes } from './collected-bytes.ts';

type Done = (error: Error | null, body?: Buffer) => void;

/**
 * Parses the body of a request for Fastify (PROTOCOL.md, clause ERR-9): removes its `Content-Encoding` and reads at
 * most the `bodyLimit` of its route. Afterwards the headers describe the plain body, for its next reader. Errors have a `statusCode`: 413 for a body that is too long, 400 for one that is cut off or does not match its
 * encoding, 415 for an unknown encoding.
 */
export function takeBytes({ headers, routeOptions }: FastifyRequest, payload: NodeJS.ReadableStream, done: Done): void {
  const announced = Number(headers['content-length'] ?? Number.NaN);
  const body = new CollectedBytes(routeOptions.bodyLimit);
  const finish: Done = (error, bytes) => {
    payload.removeListener('data', add).removeListener('end', end).removeListener('error', fail);
    done(error, bytes);
  };
  const fail = (error: Error) => finish(Object.assign(error, { statusCode: 400 }));
  const add = (piece: Buffer) => {
    if (!body.add(piece)) finish(tooLong());
  };
  const take = (content: Buffer) => {
    delete headers['content-encoding'];
    if (!Number.isNaN(announced)) headers['content-length'] = String(content.length);
    finish(null, content);
  };
  const end = () => {
    if (announced !== body.bytes.length && !Number.isNaN(announced)) {
      return fail(new Error('the body does not have its Content-Length'));
    }
    void decompressed(body.bytes, headers, routeOptions.bodyLimit).then(take, finish);
  };
  if (announced > routeOptions.bodyLimit) done(tooLong());
  else payload.on('data', add).on('end', end).on('error', fail);
}

function tooLong(): Error {
  return Object.assign(new Error('the body is too long'), { statusCode: 413 });
}
