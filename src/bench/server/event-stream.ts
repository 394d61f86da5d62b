import type { ServerResponse } from 'node:http';
import { systemClock } from '../../lib/clock.ts';
import { type Follow, Refusal } from './contract.ts';
import { LIMITS } from './schemas.ts';

/** A reader that leaves so much unread is let go; it may go on with Last-Event-ID. */
const UNREAD_BYTES_MAX = 1_000_000;
/** Tells a quiet stream from a dead one. */
const HEARTBEAT_MS = 10_000;

/** The streams of server-sent events of a server. */
export class EventStreams {
  readonly #streams = new Set<ServerResponse>();

  /** Throws Refusal when there is no room for one more. */
  assertRoom(): void {
    if (this.#streams.size < LIMITS.streams) return;
    throw new Refusal(503, `${LIMITS.streams} streams are open already`, 'end one, or ask for the run itself');
  }

  /** Answers with what is told, until it is over or the reader goes away. */
  open(response: ServerResponse, follow: Follow): void {
    const gone = new AbortController();
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'x-accel-buffering': 'no' });
    this.#streams.add(response);
    // A reader that goes away in the middle of a write is no fault.
    response.on('error', () => undefined);
    const stop = follow((event) => {
      if (event === undefined) {
        response.end();
        return;
      }
      response.write(`id: ${event.id}\nevent: ${event.event}\ndata: ${JSON.stringify(event.data)}\n\n`);
      if (response.writableLength > UNREAD_BYTES_MAX) response.destroy();
    });
    response.once('close', () => {
      gone.abort();
      stop();
      this.#streams.delete(response);
    });
    void beat(response, gone.signal);
  }
}

async function beat(response: ServerResponse, gone: AbortSignal): Promise<void> {
  while (!gone.aborted && !response.writableEnded) {
    response.write(':\n\n');
    await systemClock.sleep(HEARTBEAT_MS, gone);
  }
}
