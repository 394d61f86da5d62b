import type { PayboxError } from '../../../lib/errors.ts';
import type { DisplayIo, SerialLine } from '../contract.ts';
import { displayFault } from '../fault.ts';
import { Dialogue, holdsBytes } from '../io/answers.ts';
import * as wire from './nextion-protocol.ts';
import { command, encoded, isRestart, isStatus, type NextionOptions } from './nextion-protocol.ts';
import { DRAW_TIMEOUT_MS, PATIENCE_MS } from './panel.ts';

/** After power-on a panel needs a moment until it answers. */
const GREETINGS_MAX = 3;
/** The driver waits this long for the answers to half a command of another program. */
const SETTLE_MS = 50;
/** The driver makes at most this many attempts of one command. */
const TRIES_MAX = 16;
/** This many equal refusals of one command, one after the other, blame the HMI file and not the line. */
const REFUSALS_MAX = 8;
/** The driver makes at most this many attempts if the HMI file may lack the component. */
const TOLERATED_MIN = 2;
/** The driver reads a text this often, because the answers may be garbled. */
const READS_MAX = 8;
/** A panel counts as silent after this many questions for the page. */
const SENDMES_MAX = 5;
/** The size of the panels' instruction buffer. */
const COMMAND_BYTES_MAX = 1_024;
/** Two log lines about noise are at least this far apart. */
const NOISE_LOG_EVERY_MS = 60_000;

/** The object of a command, for error texts. */
interface Subject {
  component?: string;
  page?: number | string | undefined;
}

/**
 * Sends commands to a Nextion or TJC panel and reads the answers. On a noisy line it tries a command again within the
 * time of a draw, because all commands may be done twice.
 */
export class NextionExchange {
  readonly #options: NextionOptions;
  readonly #io: DisplayIo;
  readonly #dialogue: Dialogue;
  readonly #eventsLogged = new Set<number>();
  #greeted = false;
  /** The number of commands that were tried again since the last log line. */
  #repeated = 0;
  #noiseLoggedMs = Number.NEGATIVE_INFINITY;

  /** Makes an exchange. It calls `onRestart` when the panel reports a restart by itself. */
  constructor(options: NextionOptions, line: SerialLine, io: DisplayIo, onRestart: (error: PayboxError) => void) {
    this.#options = options;
    this.#io = io;
    const { path, baudRate } = options;
    this.#dialogue = new Dialogue({
      line,
      path,
      baudRate,
      clock: io.clock,
      cut: wire.cutAnswer,
      onUnasked: (answer) => {
        if (!this.#greeted || isStatus(answer)) return;
        if (isRestart(answer)) onRestart(this.#restarted());
        else this.#logOnce(answer[0] ?? 0);
      },
    });
  }

  /** Finds the panel and makes it answer every command. Throws a PayboxError `DISPLAY_FAULT`. */
  async greet(signal: AbortSignal): Promise<void> {
    const { path, baudRate } = this.#options;
    // The first end completes half a command in the panel's buffer.
    const hello = Uint8Array.from([...wire.END, ...command('bkcmd=3')]);
    const done = (answer: Uint8Array) => (answer.length === 1 && answer[0] === wire.DONE ? true : undefined);
    for (let left = GREETINGS_MAX; ; left -= 1) {
      signal.throwIfAborted();
      this.begin();
      if (await this.#dialogue.ask(hello, done)) break;
      if (left === 1) {
        throw displayFault(
          `the panel on ${path} does not answer at ${baudRate} baud`,
          'check its power, that TX and RX are crossed, and that baudRate is the one in its HMI file',
        );
      }
    }
    await this.#io.clock.sleep(SETTLE_MS, signal);
    this.#dialogue.forgetUnread();
    this.#greeted = true;
    this.begin();
  }

  /** Gives all commands until the next call this long together. */
  begin(timeoutMs = DRAW_TIMEOUT_MS): void {
    this.#dialogue.limit(timeoutMs);
  }

  /** Returns whether that time is not over yet. */
  hasTime(): boolean {
    return this.#dialogue.hasTime();
  }

  /**
   * Sends one command until the panel confirms it. Answers in `tolerated` count as a confirmation. Throws a PayboxError
   * `DISPLAY_FAULT` that distinguishes a silent panel, a wrong HMI file and a noisy line.
   */
  async command(instruction: string, subject: Subject = {}, tolerated: readonly number[] = []): Promise<void> {
    const bytes = command(instruction);
    const name = instruction.replace(/=.*/s, '');
    if (bytes.length > COMMAND_BYTES_MAX) {
      throw displayFault(`${name} has ${bytes.length} bytes; the panel takes ${COMMAND_BYTES_MAX}`, 'lower charsMax');
    }
    let refusals = 0;
    let last: number | undefined;
    for (let tries = 1; tries <= TRIES_MAX; tries += 1) {
      const answer = await this.#ask(bytes, statusOf);
      // After a late answer, or a command with a garbled end, the driver would misread the next answer.
      const late = answer === wire.DONE ? undefined : await this.#resynchronize(name);
      const code = answer ?? late;
      if (code === wire.DONE) return this.#logNoise(tries - 1);
      refusals = code !== undefined && code === last ? refusals + 1 : 1;
      last = code;
      if (code !== undefined && refusals >= TOLERATED_MIN && tolerated.includes(code)) return;
      if (code !== undefined && refusals === REFUSALS_MAX) throw this.#refused(code, name, subject);
      if (!this.hasTime()) break;
    }
    this.#logNoise(TRIES_MAX);
    throw this.#noisy(`did not take ${name}`);
  }

  /** Returns whether the component contains this text, by the panel's answers. */
  holds(component: string, value: string): Promise<boolean> {
    const wanted = encoded(value);
    return holdsBytes(wanted, READS_MAX, async () =>
      this.hasTime() ? this.#ask(command(`get ${component}.txt`), textOf, wanted.length) : undefined,
    );
  }

  /**
   * Throws a PayboxError `DISPLAY_FAULT` unless the component still contains this text, which a txt_maxl smaller than in the
   * configuration may have cut.
   */
  async expectStill(component: string, value: string): Promise<void> {
    const wanted = Buffer.from(encoded(value));
    const read = (answer: Uint8Array) => textOf(answer) ?? (isNoComponent(answer) ? new Uint8Array() : undefined);
    const others = new Set<string>();
    for (let left = READS_MAX; left > 0 && this.hasTime(); left -= 1) {
      const held = await this.#ask(command(`get ${component}.txt`), read, wanted.length);
      if (held === undefined) continue;
      if (held.length > 0 && wanted.subarray(0, held.length).equals(held)) return;
      const other = Buffer.from(held).toString('hex');
      if (others.has(other)) {
        throw displayFault(
          `the panel on ${this.#options.path} has lost what it showed`,
          'check its power supply, and that no touch leads to another page, if this happens often',
        );
      }
      others.add(other);
    }
    throw others.size === 0 ? this.#silent('whether it still shows what it was told to') : this.#noisy('was not heard');
  }

  /**
   * Ends half a command and waits until the panel answers which page it shows, because all earlier answers came before.
   * Returns the last status among them. Throws a PayboxError `DISPLAY_FAULT` when the panel is silent.
   */
  async #resynchronize(name: string): Promise<number | undefined> {
    const question = Uint8Array.from([...wire.END, ...command('sendme')]);
    let status: number | undefined;
    const read = (answer: Uint8Array) => {
      status = statusOf(answer) ?? status;
      return answer.length === 2 && answer[0] === wire.PAGE ? true : undefined;
    };
    for (let left = SENDMES_MAX; left > 0; left -= 1) {
      if (await this.#ask(question, read)) return status;
    }
    if (status !== undefined) return undefined;
    throw this.#silent(name);
  }

  /**
   * Returns the first answer that `accept` accepts; undefined if none arrived in time. Throws if the panel has
   * restarted instead.
   */
  #ask<T>(bytes: Uint8Array, accept: (answer: Uint8Array) => T | undefined, answerBytes = 0): Promise<T | undefined> {
    const heard = (answer: Uint8Array) => {
      if (isRestart(answer)) throw this.#restarted();
      return accept(answer);
    };
    return this.#dialogue.ask(bytes, heard, { answerBytes, timeoutMs: PATIENCE_MS });
  }

  #refused(code: number, name: string, { component, page }: Subject): PayboxError {
    const hex = `0x${code.toString(16).padStart(2, '0')}`;
    if (component !== undefined && wire.NO_COMPONENT.includes(code)) {
      return displayFault(
        `the HMI file has no component ${component} on page ${page} (${hex})`,
        'give a component this name in the editor, or name another, or null, in texts or qr',
      );
    }
    if (component === undefined && page !== undefined && code === wire.NO_PAGE) {
      return displayFault(`the HMI file has no page ${page} (${hex})`, 'correct pages, or add the page in the editor');
    }
    const what = wire.REFUSALS.get(code) ?? 'unknown error';
    return displayFault(`the panel refused ${name}: ${what} (${hex})`, 'compare the HMI file with the configuration');
  }

  #silent(question: string): PayboxError {
    return displayFault(`the panel on ${this.#options.path} did not answer ${question}`, 'check its power and cable');
  }

  #noisy(what: string): PayboxError {
    return displayFault(
      `the line to the panel on ${this.#options.path} is noisy: it ${what}, with other answers at each try`,
      'check its cable and ground, shorten the cable, or lower the baudRate here and in its HMI file',
    );
  }

  #restarted(): PayboxError {
    const advice = 'check its power supply if this happens often';
    return displayFault(`the panel on ${this.#options.path} has restarted`, advice);
  }

  #logNoise(repeated: number): void {
    this.#repeated += repeated;
    const nowMs = this.#io.clock.monotonicMs();
    if (this.#repeated === 0 || nowMs - this.#noiseLoggedMs < NOISE_LOG_EVERY_MS) return;
    this.#io.log.warn('panel-line-disturbed', { path: this.#options.path, repeated: this.#repeated });
    this.#noiseLoggedMs = nowMs;
    this.#repeated = 0;
  }

  /**
   * Touches and sleep need no reaction. The driver logs each kind once, as a hint for the person who configures them.
   */
  #logOnce(code: number): void {
    if (this.#eventsLogged.has(code)) return;
    this.#eventsLogged.add(code);
    this.#io.log.info('panel-event-ignored', { path: this.#options.path, code: `0x${code.toString(16)}` });
  }
}

function statusOf(answer: Uint8Array): number | undefined {
  return isStatus(answer) ? answer[0] : undefined;
}

function textOf(answer: Uint8Array): Uint8Array | undefined {
  return answer[0] === wire.STRING ? answer.subarray(1) : undefined;
}

function isNoComponent(answer: Uint8Array): boolean {
  return answer.length === 1 && wire.NO_COMPONENT.includes(answer[0] ?? 0);
}
