import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { Clock } from '../../../lib/clock.ts';
import { EventStream } from '../../../lib/event-stream.ts';
import type { Logger } from '../../../lib/log.ts';
import type { Frame } from '../../display/contract.ts';
import type { BoxApi, BoxStatus } from '../contract.ts';
import type { Access } from './guard.ts';

/** At most this many pages watch one box. */
const WATCHERS_MAX = 16;
/** A page that reads too slowly is disconnected; it reconnects and gets the newest state. */
const UNREAD_BYTES_MAX = 65_536;
const HEARTBEAT_MS = 10_000;
/** How soon a page reconnects after the box has ended. */
const RETRY_MS = 1_000;

/** Returns the status for a client. Only this machine gets the enrolment code (PROTOCOL.md, clause ENR-1). */
export function statusFor(status: BoxStatus, isHere: boolean): BoxStatus {
  return isHere ? status : { ...status, enrolment: null };
}

/** Numbers the frames of a box and sends every change to the watching pages, as server-sent events. */
export class StatusStream {
  readonly #box: BoxApi;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #watchers = new Map<EventStream, Access>();
  readonly #stopListening: () => void;
  #frame: Frame | undefined;
  #number = 0;
  #scheduled = false;

  constructor(box: BoxApi, { clock, log }: { clock: Clock; log: Logger }) {
    this.#box = box;
    this.#clock = clock;
    this.#log = log;
    this.#stopListening = box.onChange(() => this.#schedule());
  }

  /** Returns the newest frame, with a number that is new for every frame. */
  currentFrame(): { frame: Frame | undefined; number: number } {
    const frame = this.#box.frame();
    if (frame !== this.#frame) {
      this.#frame = frame;
      this.#number += 1;
    }
    return { frame, number: this.#number };
  }

  /** Adds a page. Returns whether there was room. */
  subscribe(response: ServerResponse, headers: OutgoingHttpHeaders, access: Access): boolean {
    if (this.#watchers.size >= WATCHERS_MAX) return false;
    const watcher = new EventStream(response, {
      clock: this.#clock,
      headers,
      heartbeatMs: HEARTBEAT_MS,
      unreadBytesMax: UNREAD_BYTES_MAX,
      retryMs: RETRY_MS,
      onSlowReader: (unreadBytes) => this.#log.warn('slow-page-dropped', { unreadBytes }),
    });
    this.#watchers.set(watcher, access);
    void watcher.ended.then(() => this.#watchers.delete(watcher));
    watcher.send({ event: 'status', data: this.#data(access) });
    return true;
  }

  close(): void {
    this.#stopListening();
    for (const watcher of this.#watchers.keys()) watcher.end();
  }

  /** Sends a change with the next turn of the event loop, once for a burst of changes. */
  #schedule(): void {
    if (this.#scheduled || this.#watchers.size === 0) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      const told = new Map<boolean, string>();
      for (const [watcher, access] of this.#watchers) {
        const data = told.get(access.isHere) ?? this.#data(access);
        told.set(access.isHere, data);
        watcher.send({ event: 'status', data });
      }
    });
  }

  #data({ isHere }: Access): string {
    const { number } = this.currentFrame();
    const sound = this.#box.sound()?.number ?? 0;
    const status = statusFor(this.#box.status(), isHere);
    return JSON.stringify({ frame: number, sound, status });
  }
}
