import { readFileSync } from 'node:fs';
import type { ReadStream } from 'node:tty';
import type { Clock } from '../../../lib/clock.ts';
import { reasonOf } from '../../../lib/errors.ts';
import type { Logger } from '../../../lib/log.ts';
import type { TerminalInput } from '../../display/contract.ts';
import type { Key } from '../contract.ts';

export interface KeyboardIo {
  clock: Clock;
  log: Logger;
}

/** The keys of the agent's terminal, whose input is in raw mode until closed. */
export interface Keyboard extends TerminalInput {
  /** Restores the terminal's mode. Safe to call twice. */
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
/** A terminal sends the bytes of one sequence much closer together than this; a person types more slowly. */
const ALONE_MS = 100;

/**
 * Watches the keys of a terminal: Esc, Space and d dismiss, r repeats, h shows the history. `interrupt` is called for
 * Ctrl-C, which makes no signal in raw mode. Only a single byte with silence around it is a key. Longer input is
 * ignored, however it is split: arrow keys, pasted text, non-ASCII letters, replies of the terminal.
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
 * Returns whether this process may use its terminal. The kernel stops a background job that reads it or changes its
 * mode. `stat` is the file of proc(5); without one the result is true.
 */
export function isInForeground(stat = ownStat()): boolean {
  // The program's name, in parentheses, may contain spaces and parentheses.
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
  /** Input since the last silence: its first byte, and the number of bytes. */
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
    // This comes last: if the terminal is gone, the lines above emit an error that needs this listener.
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
      // If this process stalled, read the bytes that came meanwhile before judging the silence.
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
