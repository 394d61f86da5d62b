import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { Clock } from './clock.ts';

export interface ServerSentEvent {
  /** A single line. */
  data: string;
  event?: string;
  id?: number;
}

export interface EventStreamOptions {
  clock: Clock;
  headers?: OutgoingHttpHeaders;
  /** Interval of comments that show that a quiet stream is alive. */
  heartbeatMs: number;
  /** A reader with more unread bytes is disconnected. */
  unreadBytesMax: number;
  /** The delay after which a reader reconnects. */
  retryMs?: number;
  onSlowReader?: (unreadBytes: number) => void;
}

/**
 * Server-sent events for one reader, over an HTTP answer. No library replaces it: `better-sse` and `@fastify/sse` neither
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
    // A reader may disconnect during a write; that is no failure.
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

  /** Ends the stream once everything is sent. */
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
