import type { FastifyRequest } from 'fastify';

/** The first room for a body; it doubles as the body grows. */
const ROOM_BYTES = 1_024;

type Done = (error: Error | null, body?: Buffer) => void;

/**
 * Reads the body of a request, at most the `bodyLimit` of its route, as a parser of Fastify. All pieces are copied into
 * one buffer: kept as they come, a body in thousands of small pieces would take a hundred times its size. Errors have a
 * `statusCode`: 413 for a body that is too long, 400 for one that is cut off.
 */
export function takeBytes({ headers, routeOptions }: FastifyRequest, payload: NodeJS.ReadableStream, done: Done): void {
  const bytesMax = routeOptions.bodyLimit;
  const announced = Number(headers['content-length'] ?? Number.NaN);
  let body = Buffer.alloc(0);
  let bytes = 0;
  const finish: Done = (error, whole) => {
    payload.removeListener('data', take).removeListener('end', end).removeListener('error', fail);
    done(error, whole);
  };
  const fail = (error: Error) => finish(Object.assign(error, { statusCode: 400 }));
  const take = (piece: Buffer) => {
    const length = bytes + piece.length;
    if (length > bytesMax) {
      finish(tooLong());
      return;
    }
    if (length > body.length) {
      const larger = Buffer.alloc(Math.max(length, ROOM_BYTES, Math.min(2 * body.length, bytesMax)));
      body.copy(larger, 0, 0, bytes);
      body = larger;
    }
    piece.copy(body, bytes);
    bytes = length;
  };
  const end = () => {
    if (announced === bytes || Number.isNaN(announced)) finish(null, body.subarray(0, bytes));
    else fail(new Error('the body does not have its Content-Length'));
  };
  if (announced > bytesMax) done(tooLong());
  else payload.on('data', take).on('end', end).on('error', fail);
}

function tooLong(): Error {
  return Object.assign(new Error('the body is too long'), { statusCode: 413 });
}
