import { z } from 'zod';
import { reasonOf } from '../../../lib/errors.ts';
import { type DisplayIo, GOODBYE_TIMEOUT_MS, type SerialLine, type SerialSettings } from '../contract.ts';
import { closedFault, displayFault } from '../fault.ts';
import { writeTimeoutMs } from '../io/answers.ts';
import { DRAW_TIMEOUT_MS, serialPath } from './panel.ts';

const BAUD_RATES = [1200, 2400, 4800, 9600, 14400, 19200, 38400, 57600, 115200, 230400, 460800, 921600] as const;

/** Returns the options of a display that answers nothing. `usual` is the baud rate of new devices. */
export function serialOptions(usual: (typeof BAUD_RATES)[number]) {
  return {
    path: serialPath,
    baudRate: z
      .literal(BAUD_RATES, { error: () => `expected one of ${BAUD_RATES.join(', ')}` })
      .default(usual)
      .describe('bits per second, as the device is set by its switches or firmware'),
  };
}

/**
 * Owns the port of an open display. The first failure ends it, and every write has a deadline by its length. If it is
 * unplugged while nothing is drawn, it asks the agent for a draw, because only a draw can report the failure.
 */
export class SerialScreen {
  readonly #line: SerialLine;
  readonly #baudRate: number;
  #failure: string | undefined;
  #closed = false;

  /** Opens the port and sends `hello`. Throws as `DisplayIo.openSerial` and `send` do. */
  static async open(
    settings: SerialSettings,
    hello: Uint8Array,
    io: DisplayIo,
    signal: AbortSignal,
  ): Promise<SerialScreen> {
    const screen = new SerialScreen(await io.openSerial(settings, signal), settings.baudRate);
    void screen.#line.lost.then((reason) => {
      screen.#failure ??= reason;
      if (!screen.#closed) io.requestDraw();
    });
    await screen.orClosed(screen.send(hello));
    return screen;
  }

  private constructor(line: SerialLine, baudRate: number) {
    this.#line = line;
    this.#baudRate = baudRate;
  }

  /** Throws if this display was closed. `draw` calls it first. */
  expectOpen(): void {
    if (this.#closed) throw closedFault();
  }

  /** Settles once all bytes were sent. Throws a PayboxError `DISPLAY_FAULT`, at every later call too. */
  async send(bytes: Uint8Array): Promise<void> {
    this.expectOpen();
    if (this.#failure !== undefined) throw displayFault(`the display is lost: ${this.#failure}`, 'plug it in again');
    if (bytes.length === 0) return;
    try {
      await this.#line.write(bytes, Math.min(DRAW_TIMEOUT_MS, writeTimeoutMs(bytes.length, this.#baudRate)));
    } catch (error) {
      this.#failure ??= reasonOf(error);
      throw error;
    }
  }

  /** Returns the result of `work`. A failure closes this display. */
  async orClosed<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  onData(listener: (bytes: Uint8Array) => void): () => void {
    return this.#line.onData(listener);
  }

  /** Sends `goodbye` if the device still works, and closes the port. A second call does nothing. */
  async close(goodbye: Uint8Array = new Uint8Array()): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    if (this.#failure === undefined && goodbye.length > 0) {
      await this.#line.write(goodbye, GOODBYE_TIMEOUT_MS).catch(() => {});
    }
    await this.#line.close();
  }
}
