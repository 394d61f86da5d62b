import type { Readable } from 'node:stream';
import type { SerialLine } from '../../../src/bench/panels/pty.ts';

/** A start bit, eight data bits and a stop bit. */
const BITS_A_BYTE = 10;
const TICK_MS = 4;
/** What the sending side of a real port holds; a pty and socat's pipe hold more beside it. */
const WAITING_BYTES_MAX = 4_096;

/** A wire of so many bits a second. */
export function wireOf(baudRate: number): SerialLine {
  return (source, receive) => {
    const wire = new SlowWire(baudRate, receive, source);
    source.on('data', (bytes: Uint8Array) => wire.take(bytes));
    source.once('close', () => wire.cut());
  };
}

/** What it cannot carry yet waits, and `source` with it. */
class SlowWire {
  readonly #bytesAMs: number;
  readonly #receive: (bytes: Uint8Array) => void;
  readonly #source: Readable;
  #waiting: Uint8Array = new Uint8Array();
  /** Since when it has carried bytes without a pause, and how many. */
  #sinceMs = 0;
  #carried = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(baudRate: number, receive: (bytes: Uint8Array) => void, source: Readable) {
    this.#bytesAMs = baudRate / BITS_A_BYTE / 1_000;
    this.#receive = receive;
    this.#source = source;
  }

  take(bytes: Uint8Array): void {
    this.#waiting = Buffer.concat([this.#waiting, bytes]);
    if (this.#waiting.length > WAITING_BYTES_MAX) this.#source.pause();
    if (this.#timer !== undefined) return;
    this.#sinceMs = performance.now();
    this.#carried = 0;
    this.#timer = setInterval(() => this.#carry(), TICK_MS);
  }

  /** Nothing more arrives. */
  cut(): void {
    clearInterval(this.#timer);
  }

  #carry(): void {
    const due = Math.floor((performance.now() - this.#sinceMs) * this.#bytesAMs) - this.#carried;
    const part = this.#waiting.subarray(0, due);
    if (part.length === 0) return;
    this.#carried += part.length;
    this.#waiting = this.#waiting.subarray(part.length);
    if (this.#waiting.length <= WAITING_BYTES_MAX) this.#source.resume();
    if (this.#waiting.length === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
    this.#receive(part);
  }
}
