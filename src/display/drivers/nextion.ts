import type { PayboxError } from '../../lib/errors.ts';
import type { Display, DisplayDriver, DisplayIo, PanelFrame, PanelSurface, SerialLine } from '../contract.ts';
import { displayFault } from '../fault.ts';
import { ANSWER_TIMEOUT_MS, Dialogue } from '../io/answers.ts';
import * as wire from './nextion-protocol.ts';
import { assignment, command, encoded, isRestart, type NextionOptions, nextionOptions } from './nextion-protocol.ts';
import {
  ASK_EVERY_MS,
  DRAW_TIMEOUT_MS,
  openPanel,
  PANEL_TEXTS,
  PanelDisplay,
  type PanelText,
  shortened,
} from './panel.ts';

/** After power-on a panel needs a moment until it answers. */
const GREETINGS_MAX = 3;
/** Time for the answers to half a command of another program. */
const SETTLE_MS = 50;
/** Tries of a text that is not in its component. */
const WRITES_MAX = 3;
/** Reads of a text that differs or does not come: the answer may be garbled. */
const READS_MAX = 2;
/** Size of the panels' instruction buffer. */
const COMMAND_BYTES_MAX = 1_024;

/**
 * Nextion and TJC panels: text commands that end with FF FF FF; each one is answered (`bkcmd=3`). A panel also answers
 * "done" to a garbled text. So QR and amount are read back, and the QR becomes visible only if both are right.
 * Visibility cannot be read, so the answer to `vis` must be enough. Not every HMI file reports a restart, so a text is
 * read at intervals: a restart clears it.
 */
export const nextion: DisplayDriver<NextionOptions> = {
  name: 'nextion',
  summary: 'a Nextion or TJC serial panel that draws texts and the QR itself',
  options: nextionOptions,
  example: nextionOptions.parse({ path: '/dev/serial/by-id/usb-1a86_USB_Serial-if00-port0' }),
  open: (given, io, signal) => openPanel(given, io, signal, (line) => new Nextion(given, line, io)),
};

/** Object of a command, for error texts. */
interface Subject {
  component?: string;
  page?: number | string;
}

class Nextion {
  readonly display: Display;
  readonly #options: NextionOptions;
  readonly #io: DisplayIo;
  readonly #dialogue: Dialogue;
  readonly #shown = new Map<PanelText, string>();
  #page: number | string | undefined;
  /** Undefined after a page was loaded: it cannot be read. */
  #qrVisible: boolean | undefined;
  #qrShown: string | undefined;
  /** Number of texts written since it was opened. */
  #assignments = 0;
  readonly #eventsLogged = new Set<number>();
  #greeted = false;

  constructor(given: NextionOptions, line: SerialLine, io: DisplayIo) {
    this.#options = given;
    this.#io = io;
    const { path, baudRate, qr, encoding } = given;
    const accents = encoding === 'utf-8';
    const surface: PanelSurface = { kind: 'panel', qr, accents };
    const display = new PanelDisplay(line, path, io, {
      surface,
      show: (frame) => this.#show(frame),
      refresh: { everyMs: ASK_EVERY_MS, run: () => this.#expectShown() },
      goodbye: () => this.#hideQr(),
    });
    this.display = display;
    this.#dialogue = new Dialogue({
      line,
      path,
      baudRate,
      clock: io.clock,
      cut: wire.cutAnswer,
      onUnasked: (answer) => {
        if (!this.#greeted) return;
        if (isRestart(answer)) display.fail(this.#restarted());
        else this.#logOnce(answer[0] ?? 0);
      },
    });
  }

  /** Finds the panel and makes it answer every command. Throws a PayboxError `DISPLAY_FAULT`. */
  async greet(signal: AbortSignal): Promise<void> {
    const { path, baudRate, dim } = this.#options;
    // The first end completes half a command in the panel's buffer.
    const hello = Uint8Array.from([...wire.END, ...command('bkcmd=3')]);
    for (let left = GREETINGS_MAX; ; left -= 1) {
      signal.throwIfAborted();
      const done = (answer: Uint8Array) => (answer.length === 1 && answer[0] === wire.DONE ? true : undefined);
      this.#dialogue.limit(DRAW_TIMEOUT_MS);
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
    this.#dialogue.limit(DRAW_TIMEOUT_MS);
    await this.#command(`dim=${dim}`, {});
  }

  async #show(frame: PanelFrame): Promise<void> {
    this.#dialogue.limit(DRAW_TIMEOUT_MS);
    const { pages, qr } = this.#options;
    const page = pages[frame.screen];
    if (page !== this.#page) {
      await this.#command(`page ${page}`, { page });
      this.#page = page;
      this.#shown.clear();
      this.#qrVisible = undefined;
      this.#qrShown = undefined;
    }
    // Other pages need no QR component.
    const hasQr = qr !== null && page === pages.payment;
    // A QR must never be visible beside the texts of another payment.
    if (hasQr && frame.qrCode !== this.#qrShown) await this.#setVisible(qr.component, false);
    const before = this.#assignments;
    for (const name of PANEL_TEXTS) await this.#setText(name, frame[name]);
    if (!hasQr || frame.qrCode === null) return;
    if (this.#assignments > before || frame.qrCode !== this.#qrShown)
      await this.#holdPayment(qr.component, frame.qrCode);
    await this.#setVisible(qr.component, true);
  }

  /**
   * Writes this QR and the amount beside it. They are read back last, because a garbled command may have changed any
   * component.
   */
  async #holdPayment(component: string, qrCode: string): Promise<void> {
    const { amount } = this.#options.texts;
    const shown = this.#shown.get('amount');
    for (let left = WRITES_MAX; left > 0; left -= 1) {
      if (this.#qrShown !== qrCode) await this.#assign(component, qrCode);
      this.#qrShown = qrCode;
      if (amount !== null && shown !== undefined && shown !== '' && !(await this.#holds(amount, shown))) {
        await this.#assign(amount, shown);
      } else if (await this.#holds(component, qrCode)) {
        return;
      } else {
        await this.#setVisible(component, false);
        this.#qrShown = undefined;
      }
    }
    this.#shown.delete('amount');
    throw displayFault(
      `the panel on ${this.#options.path} does not hold its QR or amount as written ${WRITES_MAX} times`,
      'check its cable, its ground and the txt_maxl of its components, or lower the baudRate here and in its HMI file',
    );
  }

  /** Whether the component contains this text, by the panel's answer. */
  async #holds(component: string, value: string): Promise<boolean> {
    const wanted = Buffer.from(encoded(value));
    const read = (answer: Uint8Array) => (answer[0] === wire.STRING ? answer.subarray(1) : undefined);
    for (let left = READS_MAX; left > 0; left -= 1) {
      const held = await this.#ask(command(`get ${component}.txt`), read, wanted.length);
      if (held !== undefined && wanted.equals(held)) return true;
    }
    return false;
  }

  /** Throws unless the panel still contains the shortest written text. */
  async #expectShown(): Promise<void> {
    this.#dialogue.limit(DRAW_TIMEOUT_MS);
    const [shortest] = this.#written().toSorted((a, b) => a.value.length - b.value.length);
    if (shortest === undefined) return;
    const wanted = Buffer.from(encoded(shortest.value));
    const read = (answer: Uint8Array) => {
      const [code = 0] = answer;
      if (code === wire.STRING) return answer.subarray(1);
      return answer.length === 1 && wire.NO_COMPONENT.includes(code) ? new Uint8Array() : undefined;
    };
    let hasAnswered = false;
    for (let left = READS_MAX; left > 0; left -= 1) {
      const held = await this.#ask(command(`get ${shortest.component}.txt`), read, wanted.length);
      hasAnswered ||= held !== undefined;
      // A txt_maxl smaller than in the configuration has cut the text.
      if (held !== undefined && held.length > 0 && wanted.subarray(0, held.length).equals(held)) return;
    }
    if (!hasAnswered) throw this.#silent('whether it still shows what it was told to');
    throw displayFault(
      `the panel on ${this.#options.path} has lost what it showed`,
      'check its power supply, and that no touch leads to another page, if this happens often',
    );
  }

  /** All texts on the page that are not empty. */
  #written(): { component: string; value: string }[] {
    const { texts, qr } = this.#options;
    const all = [...this.#shown].map(([name, value]) => ({ component: texts[name], value }));
    const code = { component: qr?.component, value: this.#qrVisible ? (this.#qrShown ?? '') : '' };
    return [...all, code].flatMap(({ component, value }) => (component && value !== '' ? [{ component, value }] : []));
  }

  async #hideQr(): Promise<void> {
    const { qr, pages } = this.#options;
    this.#dialogue.limit(ANSWER_TIMEOUT_MS);
    if (qr !== null && this.#page === pages.payment) await this.#setVisible(qr.component, false);
  }

  async #setVisible(component: string, visible: boolean): Promise<void> {
    if (this.#qrVisible === visible) return;
    this.#qrVisible = undefined;
    await this.#command(`vis ${component},${visible ? 1 : 0}`, { component });
    this.#qrVisible = visible;
    if (!visible) this.#qrShown = undefined;
  }

  async #setText(name: PanelText, given: string): Promise<void> {
    const component = this.#options.texts[name];
    if (component === null) return;
    const { encoding, textBytesMax } = this.#options;
    const fits = (value: string) => encoded(value).length <= textBytesMax;
    const value = shortened(given, fits, encoding === 'utf-8' ? '…' : '~');
    if (this.#shown.get(name) === value) return;
    await this.#assign(component, value, value === '' ? wire.NO_COMPONENT : []);
    this.#shown.set(name, value);
  }

  async #assign(component: string, value: string, tolerated: readonly number[] = []): Promise<void> {
    this.#assignments += 1;
    await this.#command(assignment(component, value, this.#options.encoding), { component }, tolerated);
  }

  /** Sends one command and waits until it is done. Answers in `tolerated` count as done. */
  async #command(instruction: string, subject: Subject, tolerated: readonly number[] = []): Promise<void> {
    const bytes = command(instruction);
    const name = instruction.replace(/=.*/s, '');
    if (bytes.length > COMMAND_BYTES_MAX) {
      throw displayFault(`${name} has ${bytes.length} bytes; the panel takes ${COMMAND_BYTES_MAX}`, 'lower charsMax');
    }
    const status = (answer: Uint8Array) => {
      const [code = 0] = answer;
      return answer.length === 1 && (code === wire.DONE || wire.REFUSALS.has(code)) ? code : undefined;
    };
    const code = await this.#ask(bytes, status);
    if (code === undefined) throw this.#silent(name);
    if (code !== wire.DONE && !tolerated.includes(code)) throw this.#refused(code, name, subject);
  }

  /** Undefined if no answer that `accept` takes came in time. Throws when the panel has restarted instead. */
  #ask<T>(bytes: Uint8Array, accept: (answer: Uint8Array) => T | undefined, answerBytes = 0): Promise<T | undefined> {
    const heard = (answer: Uint8Array) => {
      if (isRestart(answer)) throw this.#restarted();
      return accept(answer);
    };
    return this.#dialogue.ask(bytes, heard, answerBytes);
  }

  #refused(code: number, name: string, { component, page }: Subject): PayboxError {
    const hex = `0x${code.toString(16).padStart(2, '0')}`;
    if (component !== undefined && wire.NO_COMPONENT.includes(code)) {
      return displayFault(
        `the HMI file has no component ${component} on page ${this.#page} (${hex})`,
        'give a component this name in the editor, or name another, or null, in texts or qr',
      );
    }
    if (page !== undefined && code === wire.NO_PAGE) {
      return displayFault(`the HMI file has no page ${page} (${hex})`, 'correct pages, or add the page in the editor');
    }
    const what = wire.REFUSALS.get(code) ?? 'unknown error';
    return displayFault(`the panel refused ${name}: ${what} (${hex})`, 'compare the HMI file with the configuration');
  }

  #silent(question: string): PayboxError {
    return displayFault(`the panel on ${this.#options.path} did not answer ${question}`, 'check its power and cable');
  }

  #restarted(): PayboxError {
    const advice = 'check its power supply if this happens often';
    return displayFault(`the panel on ${this.#options.path} has restarted`, advice);
  }

  /** Touches and sleep need no reaction. Each kind is logged once, as a hint for whoever configures them. */
  #logOnce(code: number): void {
    if (this.#eventsLogged.has(code)) return;
    this.#eventsLogged.add(code);
    this.#io.log.info('panel-event-ignored', { path: this.#options.path, code: `0x${code.toString(16)}` });
  }
}
