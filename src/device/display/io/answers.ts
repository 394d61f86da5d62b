import { type Clock, withDeadline } from '../../../lib/clock.ts';
import type { SerialLine } from '../contract.ts';
import { displayFault } from '../fault.ts';

/** The reader stores this many bytes without an answer, and drops older ones. */
const UNREAD_BYTES_MAX = 1_024;
/** An answer may take this long, besides the time of its bytes on the wire. */
export const ANSWER_TIMEOUT_MS = 1_000;
/** A write may take this much longer than the time that the line needs for the bytes. */
const WRITE_SLACK_MS = 1_000;
/** A byte on the wire has a start bit, eight data bits and a stop bit. */
const BITS_A_BYTE = 10;

/** Cuts the first answer from `bytes`. `length` includes bytes before it; undefined until the answer is complete. */
export type Cut = (bytes: Uint8Array) => { answer: Uint8Array; length: number } | undefined;

export interface DialogueDeps {
  line: SerialLine;
  /** The name of the line in errors. */
  path: string;
  baudRate: number;
  clock: Clock;
  cut: Cut;
  /** Receives what the panel sends by itself. */
  onUnasked(answer: Uint8Array): void;
}

/** Asks questions on a serial line and gets the answers, one at a time. */
export class Dialogue {
  readonly #deps: DialogueDeps;
  #unread: Uint8Array = new Uint8Array();
  #untilMs = 0;
  /** Offers an answer to the current question. Returns whether it is the right one. */
  #offer: ((answer: Uint8Array) => boolean) | undefined;
  /**
   * Ends the current question. It is a single function, because a reaction to `lost` per question would pile up over
   * days.
   */
  #giveUp: ((reason: string) => void) | undefined;

  constructor(deps: DialogueDeps) {
    this.#deps = deps;
    deps.line.onData((bytes) => this.#take(bytes));
    void deps.line.lost.then((reason) => this.#giveUp?.(reason));
  }

  /** Gives all questions until the next call this long together, besides the time of their bytes on the wire. */
  limit(timeoutMs: number): void {
    this.#untilMs = this.#deps.clock.monotonicMs() + timeoutMs;
  }

  /** Returns whether that time is not over yet. */
  hasTime(): boolean {
    return this.#deps.clock.monotonicMs() < this.#untilMs;
  }

  /**
   * Sends `command` and settles with the first result of `accept` that is not undefined. Other answers count as
   * unasked. The result is undefined when an answer of `answerBytes` takes longer than `timeoutMs`, counted from the
   * end of sending. Throws what `accept` throws, and a PayboxError `DISPLAY_FAULT` when the line is stuck or lost.
   */
  async ask<T>(
    command: Uint8Array,
    accept: (answer: Uint8Array) => T | undefined,
    { answerBytes = 0, timeoutMs = ANSWER_TIMEOUT_MS }: { answerBytes?: number; timeoutMs?: number } = {},
  ): Promise<T | undefined> {
    const { clock, baudRate } = this.#deps;
    const leftMs = Math.max(1, this.#untilMs - clock.monotonicMs());
    // Adapters may report bytes as sent that are still on the wire.
    const onTheWireMs = wireMs(command.length, baudRate) + wireMs(answerBytes, baudRate);
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
      const made = await withDeadline(clock, Math.min(timeoutMs, leftMs) + onTheWireMs, answered.promise);
      // An incomplete answer would swallow the answer to the next question.
      if (made === undefined) this.forgetUnread();
      return made;
    } finally {
      this.#offer = undefined;
      this.#giveUp = undefined;
    }
  }

  /** Sends bytes that get no answer. Throws a PayboxError `DISPLAY_FAULT` when the line is stuck or lost. */
  send(bytes: Uint8Array): Promise<void> {
    return this.#deps.line.write(bytes, writeTimeoutMs(bytes.length, this.#deps.baudRate));
  }

  /** Drops the beginning of an incomplete answer. */
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

/**
 * Returns whether a device holds these bytes. It uses at most `readsMax` answers to `read`, which may be garbled: each
 * byte must be correct once. The same wrong byte twice at one place, or the same wrong length twice, is not noise.
 */
export async function holdsBytes(
  wanted: Uint8Array,
  readsMax: number,
  read: () => Promise<ArrayLike<number> | undefined>,
): Promise<boolean> {
  const unread = new Set(wanted.keys());
  const wrong = new Set<string>();
  const isSeenAgain = (what: string) => wrong.size === wrong.add(what).size;
  for (let left = readsMax; left > 0; left -= 1) {
    const held = await read();
    if (held === undefined) continue;
    if (held.length !== wanted.length) {
      if (isSeenAgain(`${held.length} bytes`)) return false;
      continue;
    }
    for (const [at, byte] of wanted.entries()) {
      if (held[at] === byte) unread.delete(at);
      else if (isSeenAgain(`${held[at]} at ${at}`)) return false;
    }
    if (unread.size === 0) return true;
  }
  return false;
}

/** Returns the time after which a line counts as stuck for this many bytes. */
export function writeTimeoutMs(bytes: number, baudRate: number): number {
  return WRITE_SLACK_MS + 2 * wireMs(bytes, baudRate);
}

/** Returns the time of the bytes on the wire, with a start bit and a stop bit each. */
function wireMs(bytes: number, baudRate: number): number {
  return Math.ceil((bytes * BITS_A_BYTE * 1_000) / baudRate);
}
