import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { Frame } from '../../display/contract.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../lib/log.ts';
import type { BoxStatus, BoxWindow } from '../contract.ts';
import type { Access } from './guard.ts';

/** Pages that watch one box. */
const WATCHERS_MAX = 16;
/** A page that reads too slowly is let go, not buffered for: it connects again and gets the newest. */
const UNREAD_BYTES_MAX = 65_536;
const HEARTBEAT_MS = 10_000;
/** How soon a page comes back after the box has gone. */
const RETRY_MS = 1_000;

/** The status as it is told to whoever asks: the code of an enrolment on this machine only (PROTOCOL.md, clause ENR-1). */
export function statusFor(status: BoxStatus, { isHere }: Pick<Access, 'isHere'>): BoxStatus {
  return isHere ? status : { ...status, enrolment: null };
}

/** Numbers the frames of a box and tells watching pages of every change, as server-sent events. */
export class LiveStatus {
  readonly #window: BoxWindow;
  readonly #log: Logger;
  readonly #watchers = new Map<ServerResponse, Pick<Access, 'isHere'>>();
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
  subscribe(response: ServerResponse, headers: OutgoingHttpHeaders, access: Pick<Access, 'isHere'>): boolean {
    if (this.#watchers.size >= WATCHERS_MAX) return false;
    response.writeHead(200, { ...headers, 'content-type': 'text/event-stream; charset=utf-8' });
    response.on('close', () => this.#watchers.delete(response));
    // A page that goes away in the middle of a write is no fault.
    response.on('error', () => undefined);
    this.#watchers.set(response, access);
    response.write(`retry: ${RETRY_MS}\n\n${this.#event(access)}`);
    return true;
  }

  close(): void {
    this.#closed.abort();
    this.#stopListening();
    for (const watcher of this.#watchers.keys()) watcher.end();
  }

  /** Changes come in bursts: what happens in one turn of the event loop is told once. */
  #schedule(): void {
    if (this.#scheduled || this.#watchers.size === 0) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      if (this.#closed.signal.aborted) return;
      const [here, elsewhere] = [this.#event({ isHere: true }), this.#event({ isHere: false })];
      this.#tell(({ isHere }) => (isHere ? here : elsewhere));
    });
  }

  #event(access: Pick<Access, 'isHere'>): string {
    const { number } = this.currentFrame();
    const sound = this.#window.sound()?.number ?? 0;
    const status = statusFor(this.#window.status(), access);
    return `event: status\ndata: ${JSON.stringify({ frame: number, sound, status })}\n\n`;
  }

  #tell(text: (access: Pick<Access, 'isHere'>) => string): void {
    for (const [watcher, access] of this.#watchers) {
      if (watcher.writableLength > UNREAD_BYTES_MAX) {
        this.#log.warn('slow-page-dropped', { unreadBytes: watcher.writableLength });
        this.#watchers.delete(watcher);
        watcher.destroy();
      } else {
        watcher.write(text(access));
      }
    }
  }

  async #heartbeat(clock: Clock): Promise<void> {
    const { signal } = this.#closed;
    while (!signal.aborted) {
      await clock.sleep(HEARTBEAT_MS, signal);
      if (!signal.aborted) this.#tell(() => ': alive\n\n');
    }
  }
}
