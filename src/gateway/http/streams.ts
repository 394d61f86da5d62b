import type { ServerResponse } from 'node:http';
import type { FastifyReply } from 'fastify';
import type { Clock } from '../../lib/clock.ts';
import { BOX_ALIVE_MS } from '../../protocol/http-api.ts';
import { UNREAD_BYTES_MAX } from '../boxes/connection.ts';

/** A stream of server-sent events to one reader. */
export interface EventStream {
  send(data: string): void;
  end(): void;
  /** Ends it at once, for a reader that may never read what is still to come. */
  cut(): void;
  /** Lets nothing through, its end neither, until the returned function is called (clause FLT-9). */
  hold(): () => void;
  /** Settles once the stream has ended, from either side. */
  ended: Promise<void>;
}

/** Turns a request's answer into a stream; the reply is no longer Fastify's. */
export function openStream(reply: FastifyReply, clock: Clock, headers: Record<string, string> = {}): EventStream {
  reply.hijack();
  const raw: ServerResponse = reply.raw;
  raw.writeHead(200, {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store',
    'x-accel-buffering': 'no',
    ...headers,
  });
  const over = new AbortController();
  const ended = new Promise<void>((resolve) => over.signal.addEventListener('abort', () => resolve()));
  raw.once('close', () => over.abort());
  let isHeld = false;
  raw.on('error', () => raw.destroy());
  const write = (text: string) => {
    if (over.signal.aborted || raw.writableEnded) return;
    raw.write(text);
    if (raw.writableLength > UNREAD_BYTES_MAX) raw.destroy();
  };
  const ping = async () => {
    while (!over.signal.aborted) {
      // Tells a quiet stream from a dead one (PROTOCOL.md, clause BOX-HTTP-3).
      write(':\n\n');
      await clock.sleep(BOX_ALIVE_MS, over.signal);
    }
  };
  void ping();
  return {
    send: (data) => write(`data: ${data}\n\n`),
    end: () => raw.end(),
    cut: () => {
      over.abort();
      if (!isHeld) raw.destroy();
    },
    hold: () => {
      isHeld = true;
      raw.cork();
      raw.socket?.pause();
      return () => {
        isHeld = false;
        raw.uncork();
        raw.socket?.resume();
        if (over.signal.aborted) raw.destroy();
      };
    },
    ended,
  };
}
