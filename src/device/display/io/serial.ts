import { stat } from 'node:fs/promises';
import type { SerialPort } from 'serialport';
import { type Clock, systemClock, withDeadline } from '../../../lib/clock.ts';
import { PayboxError, reasonOf } from '../../../lib/errors.ts';
import type { SerialLine, SerialSettings } from '../contract.ts';

const CLOSE_TIMEOUT_MS = 1_000;
const PRESENCE_CHECK_MS = 1_000;

/** The advice for each error of opening a port. serialport gives only the system's text. */
const FIXES: readonly (readonly [RegExp, string])[] = [
  [/no such file/i, 'plug the device in, or correct path: ls /dev/serial/by-id lists what is there'],
  [/permission denied/i, 'let the user that runs the agent use it: add it to the group dialout'],
  [/cannot lock|busy|temporarily unavailable/i, 'another program has it open: stop that one'],
  [/inappropriate ioctl|is a directory/i, 'it is not a serial port: correct path'],
];

/** Opens a serial port of the machine, or a pty. Throws a PayboxError `DISPLAY_FAULT` that says what to do. */
export async function openSerial(settings: SerialSettings, signal: AbortSignal, clock: Clock): Promise<SerialLine> {
  signal.throwIfAborted();
  // The module is loaded here, because most boxes have no serial display.
  const { SerialPort } = await import('serialport');
  const { path, baudRate, rtscts = false } = settings;
  const port = new SerialPort({ path, baudRate, rtscts, lock: true, autoOpen: false });
  // Without a listener an error would end the process.
  port.on('error', () => undefined);
  await new Promise<void>((resolve, reject) => {
    port.open((error) => (error === null ? resolve() : reject(openFailed(path, error))));
  });
  const line = new Line(port, path, clock);
  void line.watch();
  if (signal.aborted) await line.close();
  signal.throwIfAborted();
  return line;
}

function openFailed(path: string, error: Error): PayboxError {
  const [, fix = 'check path, baudRate and cable'] = FIXES.find(([words]) => words.test(error.message)) ?? [];
  const reason = reasonOf(error)
    .replace(/^Error:? /, '')
    .replace(/,? cannot open .*$/i, '');
  return fault(`${path} cannot be opened: ${reason}`, fix, error);
}

function fault(message: string, fix: string, cause?: unknown): PayboxError {
  return new PayboxError('DISPLAY_FAULT', message, { severity: 'retryable', fix, cause });
}

/** Returns the identity of the device at a path; undefined if there is none. */
async function deviceAt(path: string): Promise<string | undefined> {
  const found = await stat(path).catch(() => undefined);
  return found && `${found.rdev} ${found.ino}`;
}

class Line implements SerialLine {
  readonly lost: Promise<string>;
  readonly #port: SerialPort;
  readonly #path: string;
  readonly #clock: Clock;
  readonly #listeners = new Set<(bytes: Uint8Array) => void>();
  /** The writes in progress. A reaction to `lost` per write would pile up over days. */
  readonly #writing = new Set<(reason: string) => void>();
  readonly #over = new AbortController();
  #lose: (reason: string) => void = () => {};
  #lostReason: string | undefined;
  #stuck = false;
  #closing: Promise<void> | undefined;

  constructor(port: SerialPort, path: string, clock: Clock) {
    this.#port = port;
    this.#path = path;
    this.#clock = clock;
    this.lost = new Promise((resolve) => {
      this.#lose = (reason) => {
        this.#lostReason ??= reason;
        for (const giveUp of this.#writing) giveUp(this.#lostReason);
        this.#over.abort();
        resolve(this.#lostReason);
      };
    });
    // The port may emit `close` twice, once with the reason of an unplug.
    port.on('close', (error: Error | null | undefined) => this.#lose(error ? reasonOf(error) : 'closed'));
    // Without a reader, the port notices an unplug only at the next write.
    port.on('data', (bytes: Buffer) => {
      for (const listener of this.#listeners) listener(bytes);
    });
  }

  /**
   * Ends the line when its device disappears. After an unplug amid a flood of bytes, reads may return nothing forever,
   * and serialport reads again at once.
   */
  async watch(): Promise<void> {
    const { signal } = this.#over;
    const device = await deviceAt(this.#path);
    for (let now = device; !signal.aborted; now = await deviceAt(this.#path)) {
      if (now === undefined || now !== device) {
        this.#lose('its device is gone');
        await this.close();
      }
      await systemClock.sleep(PRESENCE_CHECK_MS, signal);
    }
  }

  async write(bytes: Uint8Array, timeoutMs: number): Promise<void> {
    if (this.#lostReason !== undefined) throw this.#unplugged(this.#lostReason);
    const lost = Promise.withResolvers<never>();
    const giveUp = (reason: string) => lost.reject(this.#unplugged(reason));
    this.#writing.add(giveUp);
    try {
      const left = Promise.race([this.#send(bytes), lost.promise]);
      if ((await withDeadline(this.#clock, timeoutMs, left)) !== undefined) return;
    } finally {
      this.#writing.delete(giveUp);
    }
    this.#stuck = true;
    throw fault(
      `${this.#path} did not take ${bytes.length} bytes within ${timeoutMs} ms`,
      'check the power of the device, and flow control',
    );
  }

  onData(listener: (bytes: Uint8Array) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  #send(bytes: Uint8Array): Promise<true> {
    return new Promise((resolve, reject) => {
      const failed = (error: Error) => reject(this.#unplugged(reasonOf(error)));
      this.#port.write(Buffer.from(bytes), (error) => {
        if (error) failed(error);
        else this.#port.drain((drainError) => (drainError ? failed(drainError) : resolve(true)));
      });
    });
  }

  async #close(): Promise<void> {
    if (this.#port.isOpen) {
      // If a device accepts nothing, drain and close would block until the waiting bytes are discarded.
      if (this.#stuck || this.#writing.size > 0) await this.#bounded((done) => this.#port.flush(done));
      await this.#bounded((done) => this.#port.close(done));
    }
    this.#lose('closed');
  }

  async #bounded(work: (done: () => void) => void): Promise<void> {
    await withDeadline(this.#clock, CLOSE_TIMEOUT_MS, new Promise<void>((resolve) => work(() => resolve())));
  }

  #unplugged(reason: string): PayboxError {
    return fault(`${this.#path} is lost: ${reason}`, 'plug the device in again');
  }
}
