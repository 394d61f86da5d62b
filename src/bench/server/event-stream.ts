import type { ServerResponse } from 'node:http';
import { systemClock } from '../../lib/clock.ts';
import { EventStream } from '../../lib/event-stream.ts';
import { Refusal, type Subscribe } from './route.ts';
import { LIMITS } from './schemas.ts';

/** A reader that leaves more unread is cut off; it may go on with Last-Event-ID. */
const UNREAD_BYTES_MAX = 1_000_000;
const HEARTBEAT_MS = 10_000;

/** The streams of server-sent events of a server. */
export class EventStreams {
  readonly #streams = new Set<EventStream>();

  /** Throws Refusal when there is no room for one more. */
  assertRoom(): void {
    if (this.#streams.size < LIMITS.streams) return;
    throw new Refusal(503, `${LIMITS.streams} streams are open already`, 'end one, or ask for the run itself');
  }

  /** Answers with the events, until it is over or the reader goes away. */
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
