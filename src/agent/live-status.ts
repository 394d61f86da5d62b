import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { Frame } from '../display/contract.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/log.ts';
import type { BoxWindow } from './contract.ts';

/** Pages that watch one box. */
const WATCHERS_MAX = 16;
/** A page that reads too slowly is let go, not buffered for: it connects again and gets the newest. */
const UNREAD_BYTES_MAX = 65_536;
const HEARTBEAT_MS = 10_000;
/** How soon a page comes back after the box has gone. */
const RETRY_MS = 1_000;

/** Numbers the frames of a box and tells watching pages of every change, as server-sent events. */
export class LiveStatus {
  readonly #window: BoxWindow;
  readonly #log: Logger;
  readonly #watchers = new Set<ServerResponse>();
  readonly #closed = new AbortController();
  readonly #stopListening: () => void;
  #frame: Frame | undefined;
  #number = 0;
  #scheduled = false;

  constructor(window: BoxWindow, { clock, log }: { clock: Clock; log: Logger }) {
    this.#window = window;
    this.#log = log;
    this.#stopListening = window.onChange(() => this.#schedule());
    void this.#heartbeat(clock);
  }

  /** The newest frame, with a number that is another for every other frame. */
  currentFrame(): { frame: Frame | undefined; number: number } {
    const frame = this.#window.frame();
    if (frame !== this.#frame) {
      this.#frame = frame;
      this.#number += 1;
    }
    return { frame, number: this.#number };
  }

  /** Whether there was room for one more page. */
  subscribe(response: ServerResponse, headers: OutgoingHttpHeaders): boolean {
    if (this.#watchers.size >= WATCHERS_MAX) return false;
    response.writeHead(200, { ...headers, 'content-type': 'text/event-stream; charset=utf-8' });
    response.on('close', () => this.#watchers.delete(response));
    // A page that goes away in the middle of a write is no fault.
    response.on('error', () => undefined);
    this.#watchers.add(response);
    response.write(`retry: ${RETRY_MS}\n\n${this.#event()}`);
    return true;
  }

  close(): void {
    this.#closed.abort();
    this.#stopListening();
    for (const watcher of this.#watchers) watcher.end();
  }

  /** Changes come in bursts: what happens in one turn of the event loop is told once. */
  #schedule(): void {
    if (this.#scheduled || this.#watchers.size === 0) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      if (!this.#closed.signal.aborted) this.#tell(this.#event());
    });
  }

  #event(): string {
    const { number } = this.currentFrame();
    const sound = this.#window.sound()?.number ?? 0;
    return `event: status\ndata: ${JSON.stringify({ frame: number, sound, status: this.#window.status() })}\n\n`;
  }

  #tell(text: string): void {
    for (const watcher of this.#watchers) {
      if (watcher.writableLength > UNREAD_BYTES_MAX) {
        this.#log.warn('slow-page-dropped', { unreadBytes: watcher.writableLength });
        this.#watchers.delete(watcher);
        watcher.destroy();
      } else {
        watcher.write(text);
      }
    }
  }

  async #heartbeat(clock: Clock): Promise<void> {
    const { signal } = this.#closed;
    while (!signal.aborted) {
      await clock.sleep(HEARTBEAT_MS, signal);
      if (!signal.aborted) this.#tell(': alive\n\n');
    }
  }
}
