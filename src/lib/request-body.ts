import type { FastifyRequest } from 'fastify';
import { CollectedBytes } from './collected-bytes.ts';

type Done = (error: Error | null, body?: Buffer) => void;

/**
 * Reads the body of a request, at most the `bodyLimit` of its route, as a parser of Fastify. Errors have a `statusCode`:
 * 413 for a body that is too long, 400 for one that is cut off.
 */
export function takeBytes({ headers, routeOptions }: FastifyRequest, payload: NodeJS.ReadableStream, done: Done): void {
  const announced = Number(headers['content-length'] ?? Number.NaN);
  const body = new CollectedBytes(routeOptions.bodyLimit);
  const finish: Done = (error, bytes) => {
    payload.removeListener('data', take).removeListener('end', end).removeListener('error', fail);
    done(error, bytes);
  };
  const fail = (error: Error) => finish(Object.assign(error, { statusCode: 400 }));
  const take = (piece: Buffer) => {
    if (!body.add(piece)) finish(tooLong());
  };
  const end = () => {
    if (announced === body.bytes.length || Number.isNaN(announced)) finish(null, body.bytes);
    else fail(new Error('the body does not have its Content-Length'));
  };
  if (announced > routeOptions.bodyLimit) done(tooLong());
  else payload.on('data', take).on('end', end).on('error', fail);
}

function tooLong(): Error {
  return Object.assign(new Error('the body is too long'), { statusCode: 413 });
}
