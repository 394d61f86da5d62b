import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { Clock } from './clock.ts';

export interface ServerSentEvent {
  /** One line. */
  data: string;
  event?: string;
  id?: number;
}

export interface EventStreamOptions {
  clock: Clock;
  headers?: OutgoingHttpHeaders;
  /** A comment this often tells a quiet stream from a dead one. */
  heartbeatMs: number;
  /** A reader that leaves more unread is cut off. */
  unreadBytesMax: number;
  /** How soon a reader comes back after the stream has ended. */
  retryMs?: number;
  onSlowReader?: (unreadBytes: number) => void;
}

/** An answer turned into server-sent events for one reader. */
export class EventStream {
  readonly #response: ServerResponse;
  readonly #options: EventStreamOptions;
  readonly #closed = new AbortController();
  /** Settles once the stream has ended, from either side. */
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
    // A reader that goes away in the middle of a write is no fault.
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

  /** Ends it once all is sent. */
  end(): void {
    this.#response.end();
  }

  /** Ends it at once, for a reader that may never read what is still to come. */
  cut(): void {
    this.#closed.abort();
    this.#response.destroy();
  }

  #write(text: string): void {
    const { unreadBytesMax, onSlowReader } = this.#options;
    if (this.#closed.signal.aborted || this.#response.writableEnded) return;
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
