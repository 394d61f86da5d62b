import { readFileSync } from 'node:fs';
import type { ReadStream } from 'node:tty';
import type { TerminalInput } from '../../display/contract.ts';
import type { Clock } from '../../lib/clock.ts';
import { reasonOf } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import type { Key } from '../contract.ts';

export interface KeyboardIo {
  clock: Clock;
  log: Logger;
}

/** The keys of the terminal that the agent runs in. It owns the terminal's input, in raw mode, until it is closed. */
export interface Keyboard extends TerminalInput {
  /** Gives the terminal back as a shell expects it. Safe to call twice. */
  close(): void;
}

const CTRL_C = 0x03;
const KEYS: ReadonlyMap<number, Key> = new Map([
  [0x1b, 'dismiss'],
  [0x20, 'dismiss'],
  [0x64, 'dismiss'],
  [0x72, 'repeat'],
  [0x68, 'history'],
]);
/** A terminal sends the bytes of one sequence far closer together than this; a person cannot type that fast. */
const ALONE_MS = 100;

/**
 * Watches the keys of a terminal: Esc, Space and d dismiss, r repeats, h shows the history. `interrupt` is called for
 * Ctrl-C, which makes no signal in raw mode. A key is one byte with silence around it: whatever comes as more, an arrow
 * key, pasted text, a letter beyond ASCII or the terminal's reply to a query, is no key, however it is split.
 */
export function watchKeyboard(
  input: ReadStream,
  io: KeyboardIo,
  press: (key: Key) => void,
  interrupt: () => void,
): Keyboard {
  return new TerminalKeyboard(input, io, press, interrupt);
}

/**
 * Whether this process may touch its terminal: the kernel stops a background job that changes the terminal's mode or
 * reads from it. `stat` is that of proc(5); true where there is none.
 */
export function isInForeground(stat = ownStat()): boolean {
  // The name of the program, in parentheses, may hold spaces and parentheses.
  const [, , processGroup, , , foregroundGroup = '-1'] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return foregroundGroup === '-1' || foregroundGroup === processGroup;
}

class TerminalKeyboard implements Keyboard {
  readonly #input: ReadStream;
  readonly #io: KeyboardIo;
  readonly #press: (key: Key) => void;
  readonly #interrupt: () => void;
  readonly #closed = new AbortController();
  readonly #listeners = new Set<(bytes: Uint8Array) => void>();
  /** What has come since the last silence: its first byte, and how many. */
  #first = 0;
  #bytes = 0;
  #lastAtMs = 0;

  constructor(input: ReadStream, io: KeyboardIo, press: (key: Key) => void, interrupt: () => void) {
    this.#input = input;
    this.#io = io;
    this.#press = press;
    this.#interrupt = interrupt;
    input.on('error', this.#onError);
    input.on('end', this.#onEnd);
    input.on('data', this.#onData);
    input.setRawMode(true);
    input.resume();
  }

  onData(listener: (bytes: Uint8Array) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  close(): void {
    if (this.#closed.signal.aborted) return;
    this.#closed.abort();
    this.#input.off('data', this.#onData);
    this.#input.off('end', this.#onEnd);
    this.#input.setRawMode(false);
    this.#input.pause();
    // Last, because a terminal that is gone makes the lines above emit an error, which nobody else would take.
    this.#input.off('error', this.#onError);
    this.#listeners.clear();
  }

  readonly #onEnd = (): void => this.close();

  readonly #onError = (error: Error): void => {
    if (this.#closed.signal.aborted) return;
    this.#io.log.warn('keyboard-lost', { reason: reasonOf(error) });
    this.close();
  };

  readonly #onData = (chunk: Buffer): void => {
    const wasSilent = this.#bytes === 0;
    if (wasSilent) this.#first = chunk[0] ?? 0;
    this.#bytes += chunk.length;
    this.#lastAtMs = this.#io.clock.monotonicMs();
    if (wasSilent) void this.#untilSilent();
    for (const listener of [...this.#listeners]) listener(chunk);
    if (chunk.includes(CTRL_C)) this.#interrupt();
  };

  async #untilSilent(): Promise<void> {
    const { clock } = this.#io;
    const { signal } = this.#closed;
    do {
      await clock.sleep(this.#lastAtMs + ALONE_MS - clock.monotonicMs(), signal);
      // After a stall of this process, what has come meanwhile is read now, before it is taken for silence.
      await clock.sleep(0, signal);
    } while (!signal.aborted && clock.monotonicMs() - this.#lastAtMs < ALONE_MS);
    const key = this.#bytes === 1 ? KEYS.get(this.#first) : undefined;
    this.#bytes = 0;
    if (key !== undefined && !signal.aborted) this.#press(key);
  }
}

function ownStat(): string {
  try {
    return readFileSync('/proc/self/stat', 'latin1');
  } catch {
    return '';
  }
}
