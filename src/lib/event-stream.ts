import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { Clock } from './clock.ts';

export interface ServerSentEvent {
  /** The content of the event, on a single line. */
  data: string;
  event?: string;
  id?: number;
}

export interface EventStreamOptions {
  clock: Clock;
  headers?: OutgoingHttpHeaders;
  /** The stream sends a comment after this time without events, so that the reader knows that it is alive. */
  heartbeatMs: number;
  /** The stream disconnects a reader with more unread bytes. */
  unreadBytesMax: number;
  /** A reader reconnects after this delay. */
  retryMs?: number;
  onSlowReader?: (unreadBytes: number) => void;
}

/**
 * Writes server-sent events for one reader, over an HTTP answer. No library replaces it: `better-sse` and `@fastify/sse` neither
 * disconnect a reader with too many unread bytes nor beat by an injected clock.
 */
export class EventStream {
  readonly #response: ServerResponse;
  readonly #options: EventStreamOptions;
  readonly #closed = new AbortController();
  /** Settles once either side has ended the stream. */
  readonly ended: Promise<void>;

  constructor(response: ServerResponse, options: EventStreamOptions) {
    this.#response = response;
    this.#options = options;
    this.ended = new Promise((resolve) => this.#closed.signal.addEventListener('abort', () => resolve()));
    response.writeHead(200, {
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
      ...options.headers,
      'content-type': 'text/event-stream; charset=utf-8',
    });
    // A reader may disconnect during a write, which is no failure.
    response.on('error', () => response.destroy());
    response.once('close', () => this.#closed.abort());
    if (response.destroyed) this.#closed.abort();
    if (options.retryMs !== undefined) this.#write(`retry: ${options.retryMs}\n\n`);
    void this.#beat();
  }

  send({ data, event, id }: ServerSentEvent): void {
    const fields = { id, event, data };
    const lines = Object.entries(fields).flatMap(([name, value]) => (value === undefined ? [] : `${name}: ${value}\n`));
    this.#write(`${lines.join('')}\n`);
  }

  /** Ends the stream after sending everything. */
  end(): void {
    this.#response.end();
  }

  /** Ends the stream at once, for a reader that may never read the rest. */
  cut(): void {
    this.#closed.abort();
    this.#response.destroy();
  }

  #write(text: string): void {
    const { unreadBytesMax, onSlowReader } = this.#options;
    if (this.#closed.signal.aborted || this.#response.writableEnded || this.#response.destroyed) return;
    this.#response.write(text);
    const unreadBytes = this.#response.writableLength;
    if (unreadBytes <= unreadBytesMax) return;
    onSlowReader?.(unreadBytes);
    this.#response.destroy();
  }

  async #beat(): Promise<void> {
    const { clock, heartbeatMs } = this.#options;
    const { signal } = this.#closed;
    while (!signal.aborted && !this.#response.writableEnded) {
      this.#write(':\n\n');
      await clock.sleep(heartbeatMs, signal);
    }
  }
}
