import type { ServerResponse } from 'node:http';
import { systemClock } from '../../lib/clock.ts';
import { EventStream } from '../../lib/event-stream.ts';
import { Refusal, type Subscribe } from './route.ts';
import { LIMITS } from './schemas.ts';

/** A reader with more unread bytes is disconnected; it may resume with Last-Event-ID. */
const UNREAD_BYTES_MAX = 1_000_000;
const HEARTBEAT_MS = 10_000;

/** The open event streams (SSE) of a server. */
export class EventStreams {
  readonly #streams = new Set<EventStream>();

  /** Throws Refusal when the limit of streams is reached. */
  assertRoom(): void {
    if (this.#streams.size < LIMITS.streams) return;
    throw new Refusal(503, `${LIMITS.streams} streams are open already`, 'end one, or ask for the run itself');
  }

  /** Streams events until they end or the reader disconnects. */
  open(response: ServerResponse, follow: Subscribe): void {
    const stream = new EventStream(response, {
      clock: systemClock,
      heartbeatMs: HEARTBEAT_MS,
      unreadBytesMax: UNREAD_BYTES_MAX,
    });
    this.#streams.add(stream);
    const stop = follow((event) => {
      if (event === undefined) stream.end();
      else stream.send({ ...event, data: JSON.stringify(event.data) });
    });
    void stream.ended.then(() => {
      stop();
      this.#streams.delete(stream);
    });
  }
}
