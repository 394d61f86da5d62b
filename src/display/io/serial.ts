import type { SerialPort } from 'serialport';
import { type Clock, withDeadline } from '../../lib/clock.ts';
import { PayboxError, reasonOf, systemCodeOf } from '../../lib/errors.ts';
import type { SerialLine, SerialSettings } from '../contract.ts';

const CLOSE_TIMEOUT_MS = 1_000;

/** What to do about each way in which a port cannot be opened. */
const FIXES: Record<string, string> = {
  ENOENT: 'plug the device in, or correct path: see ls /dev/serial/by-id',
  EACCES: 'let the user that runs the agent use it: add it to the group dialout',
  EBUSY: 'another program has it open: stop that one',
};

/** Opens a serial port of the machine, or a pty. Throws a PayboxError `DISPLAY_FAULT`. */
export async function openSerial(settings: SerialSettings, signal: AbortSignal, clock: Clock): Promise<SerialLine> {
  signal.throwIfAborted();
  // Loaded here because most boxes have no serial display.
  const { SerialPort } = await import('serialport');
  const { path, baudRate, rtscts = false } = settings;
  const port = new SerialPort({ path, baudRate, rtscts, lock: true, autoOpen: false });
  // Without a listener an error would end the process.
  port.on('error', () => undefined);
  await new Promise<void>((resolve, reject) => {
    port.open((error) => (error === null ? resolve() : reject(openFailed(path, error))));
  });
  return new Line(port, path, clock);
}

function openFailed(path: string, error: Error): PayboxError {
  const known = Object.keys(FIXES).find((code) => systemCodeOf(error) === code || error.message.includes(code));
  const busy = /lock|busy|temporarily unavailable/i.test(error.message) ? 'EBUSY' : undefined;
  const absent = /no such file|cannot open/i.test(error.message) ? 'ENOENT' : undefined;
  const fix = FIXES[known ?? busy ?? absent ?? ''] ?? 'check path and cable';
  return fault(`${path} cannot be opened: ${reasonOf(error)}`, fix, error);
}

function fault(message: string, fix: string, cause?: unknown): PayboxError {
  return new PayboxError('DISPLAY_FAULT', message, { severity: 'retryable', fix, cause });
}

class Line implements SerialLine {
  readonly lost: Promise<string>;
  readonly #port: SerialPort;
  readonly #path: string;
  readonly #clock: Clock;
  readonly #listeners = new Set<(bytes: Uint8Array) => void>();
  #lostReason: string | undefined;

  constructor(port: SerialPort, path: string, clock: Clock) {
    this.#port = port;
    this.#path = path;
    this.#clock = clock;
    this.lost = new Promise((resolve) => {
      // `close` may come twice, and with the reason of an unplug.
      port.on('close', (error: Error | null | undefined) => {
        this.#lostReason ??= error ? reasonOf(error) : 'closed';
        resolve(this.#lostReason);
      });
    });
    // Without a reader an unplug is only noticed at the next write.
    port.on('data', (bytes: Buffer) => {
      for (const listener of this.#listeners) listener(bytes);
    });
  }

  async write(bytes: Uint8Array, timeoutMs: number): Promise<void> {
    if (this.#lostReason !== undefined) throw this.#unplugged(this.#lostReason);
    const written = new Promise<true>((resolve, reject) => {
      this.#port.write(Buffer.from(bytes), (error) => error && reject(this.#unplugged(reasonOf(error))));
      this.#port.drain((error) => (error ? reject(this.#unplugged(reasonOf(error))) : resolve(true)));
    });
    const lost = this.lost.then((reason): never => {
      throw this.#unplugged(reason);
    });
    if ((await withDeadline(this.#clock, timeoutMs, Promise.race([written, lost]))) === undefined) {
      throw fault(
        `${this.#path} did not take ${bytes.length} bytes within ${timeoutMs} ms`,
        'check power and flow control',
      );
    }
  }

  onData(listener: (bytes: Uint8Array) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async close(): Promise<void> {
    if (!this.#port.isOpen) return;
    const closed = new Promise<void>((resolve) => this.#port.close(() => resolve()));
    await withDeadline(this.#clock, CLOSE_TIMEOUT_MS, closed);
  }

  #unplugged(reason: string): PayboxError {
    return fault(`${this.#path} is lost: ${reason}`, 'plug the device in again');
  }
}
