import type { ServerResponse } from 'node:http';
import type { FastifyReply } from 'fastify';
import type { Clock } from '../../lib/clock.ts';

/** A comment this often tells a quiet stream from a dead one (PROTOCOL.md, clause BOX-HTTP-3). */
const STREAM_PING_MS = 10_000;
/** A reader that is this far behind is cut off. */
const UNREAD_BYTES_MAX = 1_048_576;

/** A stream of server-sent events to one reader. */
export interface EventStream {
  send(data: string): void;
  end(): void;
  /** Settles once the stream has ended, from either side. */
  ended: Promise<void>;
}

/** Turns a request's answer into a stream; the reply is no longer Fastify's. */
export function openStream(reply: FastifyReply, clock: Clock): EventStream {
  reply.hijack();
  const raw: ServerResponse = reply.raw;
  raw.writeHead(200, {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store',
    'x-accel-buffering': 'no',
  });
  const over = new AbortController();
  const ended = new Promise<void>((resolve) => {
    raw.once('close', () => {
      over.abort();
      resolve();
    });
  });
  raw.on('error', () => raw.destroy());
  const write = (text: string) => {
    if (over.signal.aborted || raw.writableEnded) return;
    raw.write(text);
    if (raw.writableLength > UNREAD_BYTES_MAX) raw.destroy();
  };
  const ping = async () => {
    while (!over.signal.aborted) {
      write(':\n\n');
      await clock.sleep(STREAM_PING_MS, over.signal);
    }
  };
  void ping();
  return { send: (data) => write(`data: ${data}\n\n`), end: () => raw.end(), ended };
}
