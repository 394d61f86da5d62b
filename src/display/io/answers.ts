import { type Clock, withDeadline } from '../../lib/clock.ts';
import type { SerialLine } from '../contract.ts';
import { displayFault } from '../fault.ts';

/** A panel that talks on without an answer in it is not listened to further back than this. */
const UNREAD_BYTES_MAX = 1_024;
/** On top of what the line itself needs for the bytes. */
const WRITE_SLACK_MS = 1_000;
/** A start bit, eight data bits and a stop bit. */
const BITS_A_BYTE = 10;

/** The first answer in `bytes` and the bytes up to its end, what is no answer included; undefined until it is whole. */
export type Cut = (bytes: Uint8Array) => { answer: Uint8Array; length: number } | undefined;

export interface DialogueDeps {
  line: SerialLine;
  /** Names the line in errors. */
  path: string;
  baudRate: number;
  clock: Clock;
  cut: Cut;
  /** Told of what the panel says without being asked. */
  onUnasked(answer: Uint8Array): void;
}

/** Questions and answers on a serial line, one at a time. */
export class Dialogue {
  readonly #deps: DialogueDeps;
  #unread: Uint8Array = new Uint8Array();
  /** Whether the answer is the one that is waited for. */
  #offer: ((answer: Uint8Array) => boolean) | undefined;
  /** Ends the question under way. Were each a reaction to `lost`, a line of many days would keep all of them. */
  #giveUp: ((reason: string) => void) | undefined;

  constructor(deps: DialogueDeps) {
    this.#deps = deps;
    deps.line.onData((bytes) => this.#take(bytes));
    void deps.line.lost.then((reason) => this.#giveUp?.(reason));
  }

  /**
   * Sends `command` and settles with what `accept` makes of an answer: the first that it does not give undefined for;
   * other answers are unasked. Undefined after `timeoutMs` from when the bytes have left. Throws what `accept` throws,
   * and a PayboxError `DISPLAY_FAULT` when the line is stuck or lost.
   */
  async ask<T>(
    command: Uint8Array,
    accept: (answer: Uint8Array) => T | undefined,
    timeoutMs: number,
  ): Promise<T | undefined> {
    const answered = Promise.withResolvers<T>();
    answered.promise.catch(() => {});
    this.#giveUp = (reason) =>
      answered.reject(displayFault(`${this.#deps.path} is lost: ${reason}`, 'plug the device in again'));
    this.#offer = (answer) => {
      try {
        const made = accept(answer);
        if (made === undefined) return false;
        answered.resolve(made);
      } catch (error) {
        answered.reject(error);
      }
      return true;
    };
    try {
      await this.send(command);
      // Adapters may say that bytes have left while they are still on the wire.
      const onTheWireMs = wireMs(command.length, this.#deps.baudRate);
      const made = await withDeadline(this.#deps.clock, timeoutMs + onTheWireMs, answered.promise);
      // An incomplete answer would swallow the answer to the next question.
      if (made === undefined) this.forgetUnread();
      return made;
    } finally {
      this.#offer = undefined;
      this.#giveUp = undefined;
    }
  }

  /** Sends bytes that have no answer. Throws a PayboxError `DISPLAY_FAULT` when the line is stuck or lost. */
  send(bytes: Uint8Array): Promise<void> {
    return this.#deps.line.write(bytes, writeTimeoutMs(bytes.length, this.#deps.baudRate));
  }

  /** Forgets the beginning of an answer that never came to its end. */
  forgetUnread(): void {
    this.#unread = new Uint8Array();
  }

  #take(bytes: Uint8Array): void {
    this.#unread = Uint8Array.from([...this.#unread, ...bytes]).slice(-UNREAD_BYTES_MAX);
    for (let cut = this.#deps.cut(this.#unread); cut !== undefined; cut = this.#deps.cut(this.#unread)) {
      this.#unread = this.#unread.slice(cut.length);
      if (this.#offer?.(cut.answer)) this.#offer = undefined;
      else this.#deps.onUnasked(cut.answer);
    }
  }
}

/** How long a line may take for so many bytes before it counts as stuck. */
export function writeTimeoutMs(bytes: number, baudRate: number): number {
  return WRITE_SLACK_MS + 2 * wireMs(bytes, baudRate);
}

/** How long the bytes are on the wire, with a start bit and a stop bit each. */
export function wireMs(bytes: number, baudRate: number): number {
  return Math.ceil((bytes * BITS_A_BYTE * 1_000) / baudRate);
}
