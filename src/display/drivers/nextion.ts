import { z } from 'zod';
import type { PayboxError } from '../../lib/errors.ts';
import type { Display, DisplayDriver, DisplayIo, PanelFrame, PanelSurface, SerialLine } from '../contract.ts';
import { type Cut, Dialogue } from '../io/answers.ts';
import { displayFault } from './fault.ts';
import {
  DRAW_TIMEOUT_MS,
  eachScreen,
  PANEL_TEXTS,
  PanelDisplay,
  type PanelText,
  serialPath,
  shortened,
} from './panel.ts';

/** Every rate that the panels know. */
const BAUD_RATES = [
  2_400, 4_800, 9_600, 19_200, 31_250, 38_400, 57_600, 115_200, 230_400, 250_000, 256_000, 512_000, 921_600,
] as const;
const END = [0xff, 0xff, 0xff];
const ANSWER_TIMEOUT_MS = 1_000;
/** A panel that has just got power needs a moment until it listens. */
const GREETINGS_MAX = 3;
/** Answers to what another program left half sent have come by then. */
const SETTLE_MS = 50;
/** The instruction buffer of the panels. */
const COMMAND_BYTES_MAX = 1_024;

const component = z.string().regex(/^[A-Za-z_]\w{0,13}$/, 'expected the name of a component, as t0');
const page = z.union([z.int().min(0).max(255), component]);
const text = (name: string) => component.nullable().default(name);

const options = z.strictObject({
  path: serialPath,
  baudRate: z.literal(BAUD_RATES).default(9_600).describe('the rate that the HMI file sets; panels come with 9600'),
  encoding: z.enum(['utf-8', 'ascii']).default('utf-8').describe("the HMI file's encoding; ascii strips diacritics"),
  dim: z.int().min(0).max(100).default(100).describe('backlight in percent'),
  pages: eachScreen(page.default(0)).prefault({}).describe('the page of each screen, by number or name'),
  texts: z
    .strictObject({
      title: text('t0'),
      amount: text('t1'),
      content: text('t2'),
      holder: text('t3'),
      account: text('t4'),
      timeLeft: text('t5'),
      hint: text('t6'),
      offline: text('t7'),
    })
    .prefault({})
    .describe('the text component of each text, null to leave it out'),
  textBytesMax: z.int().min(8).max(500).default(100).describe('txt_maxl of the text components'),
  qr: z
    .strictObject({
      component: component.default('qr0'),
      sidePixels: z.int().min(29).max(1_024).default(200).describe('its width and height'),
      charsMax: z.int().min(20).max(900).default(300).describe('its txt_maxl; a longer payload is refused'),
    })
    .nullable()
    .prefault({})
    .describe('the QR component, on the page of the payment screen; pages.enrol may be the same'),
});
type Options = z.infer<typeof options>;

/** What the panel answers to a command that it refuses, by the first byte (Nextion instruction set, return data). */
const REFUSALS: ReadonlyMap<number, string> = new Map([
  [0x00, 'it does not know the command'],
  [0x02, 'no such component'],
  [0x03, 'no such page'],
  [0x1a, 'no such component or attribute'],
  [0x1b, 'the component does not take this value'],
  [0x1c, 'the value could not be assigned'],
  [0x1e, 'wrong number of parameters'],
  [0x20, 'wrong escape character'],
  [0x23, 'a name is too long'],
  [0x24, 'its buffer overflowed'],
]);
const DONE = 0x01;
const NO_COMPONENT = [0x02, 0x1a];
const NO_PAGE = 0x03;
const READY = 0x88;

/** Nextion and TJC panels: text commands, ended by FF FF FF, each answered (`bkcmd=3`). */
export const nextion: DisplayDriver<Options> = {
  name: 'nextion',
  summary: 'a Nextion or TJC serial panel that draws texts and the QR itself',
  options,
  example: options.parse({ path: '/dev/serial/by-id/usb-1a86_USB_Serial-if00-port0' }),
  open: async (given, io, signal) => {
    const { path, baudRate } = given;
    const line = await io.openSerial({ path, baudRate }, signal);
    try {
      const panel = new Nextion(given, line, io);
      await panel.greet(signal);
      return panel.display;
    } catch (error) {
      await line.close();
      throw error;
    }
  },
};

/** What a command is about, for the words of a failure. */
interface Subject {
  component?: string;
  page?: number | string;
}

class Nextion {
  readonly display: Display;
  readonly #options: Options;
  readonly #io: DisplayIo;
  readonly #dialogue: Dialogue;
  readonly #shown = new Map<PanelText, string>();
  #page: number | string | undefined;
  /** Undefined: nobody knows, after a page has been loaded. */
  #qrVisible: boolean | undefined;
  #qrShown: string | undefined;
  #untilMs = 0;
  readonly #eventsLogged = new Set<number>();
  #greeted = false;

  constructor(given: Options, line: SerialLine, io: DisplayIo) {
    this.#options = given;
    this.#io = io;
    const { path, baudRate, qr, encoding } = given;
    const accents = encoding === 'utf-8';
    const surface: PanelSurface = { kind: 'panel', qr, accents };
    const display = new PanelDisplay(
      surface,
      line,
      path,
      io,
      (frame) => this.#show(frame),
      () => this.#hideQr(),
    );
    this.display = display;
    this.#dialogue = new Dialogue({
      line,
      path,
      baudRate,
      clock: io.clock,
      cut: cutAnswer,
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
    // The leading end closes whatever half a command is in the panel's buffer.
    const hello = Uint8Array.from([...END, ...command('bkcmd=3')]);
    for (let left = GREETINGS_MAX; ; left -= 1) {
      signal.throwIfAborted();
      const done = (answer: Uint8Array) => (answer.length === 1 && answer[0] === DONE ? true : undefined);
      if (await this.#dialogue.ask(hello, done, ANSWER_TIMEOUT_MS)) break;
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
    this.#untilMs = this.#io.clock.monotonicMs() + DRAW_TIMEOUT_MS;
    await this.#command(`dim=${dim}`, {});
  }

  async #show(frame: PanelFrame): Promise<void> {
    this.#untilMs = this.#io.clock.monotonicMs() + DRAW_TIMEOUT_MS;
    const { pages, qr } = this.#options;
    const page = pages[frame.screen];
    if (page !== this.#page) {
      await this.#command(`page ${page}`, { page });
      this.#page = page;
      this.#shown.clear();
      this.#qrVisible = undefined;
      this.#qrShown = undefined;
    }
    // Other pages need no QR component at all.
    const hasQr = qr !== null && page === pages.payment;
    // A QR never stands beside the texts of another payment.
    if (hasQr && frame.qrCode !== this.#qrShown) await this.#setVisible(qr.component, false);
    for (const name of PANEL_TEXTS) await this.#setText(name, frame[name]);
    if (!hasQr || frame.qrCode === null) return;
    if (frame.qrCode !== this.#qrShown) {
      await this.#command(this.#assignment(qr.component, frame.qrCode), { component: qr.component });
      this.#qrShown = frame.qrCode;
    }
    await this.#setVisible(qr.component, true);
  }

  async #hideQr(): Promise<void> {
    const { qr, pages } = this.#options;
    this.#untilMs = this.#io.clock.monotonicMs() + ANSWER_TIMEOUT_MS;
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
    await this.#command(this.#assignment(component, value), { component }, value === '' ? NO_COMPONENT : []);
    this.#shown.set(name, value);
  }

  /** `t0.txt="…"`, with what the panel's parser asks to be escaped. Throws a PayboxError where it cannot carry the text. */
  #assignment(component: string, value: string): string {
    const carried = this.#options.encoding === 'utf-8' ? /^\P{Cc}*$/u : /^[ -~]*$/;
    if (!carried.test(value)) {
      throw displayFault(`the text for ${component} has characters that the panel cannot take`, 'set encoding: utf-8');
    }
    return `${component}.txt="${value.replaceAll(/["\\]/g, '\\$&')}"`;
  }

  /** Sends one command and waits until it is done; answers in `tolerated` count as done. */
  async #command(instruction: string, subject: Subject, tolerated: readonly number[] = []): Promise<void> {
    const bytes = command(instruction);
    const name = instruction.replace(/=.*/s, '');
    if (bytes.length > COMMAND_BYTES_MAX) {
      throw displayFault(`${name} has ${bytes.length} bytes; the panel takes ${COMMAND_BYTES_MAX}`, 'lower charsMax');
    }
    const leftMs = Math.max(1, this.#untilMs - this.#io.clock.monotonicMs());
    const status = (answer: Uint8Array) => {
      if (isRestart(answer)) throw this.#restarted();
      const [code = 0] = answer;
      return answer.length === 1 && (code === DONE || REFUSALS.has(code)) ? code : undefined;
    };
    const code = await this.#dialogue.ask(bytes, status, Math.min(ANSWER_TIMEOUT_MS, leftMs));
    if (code === undefined) {
      throw displayFault(`the panel on ${this.#options.path} did not answer ${name}`, 'check its power and cable');
    }
    if (code !== DONE && !tolerated.includes(code)) throw this.#refused(code, name, subject);
  }

  #refused(code: number, name: string, { component, page }: Subject): PayboxError {
    const hex = `0x${code.toString(16).padStart(2, '0')}`;
    if (component !== undefined && NO_COMPONENT.includes(code)) {
      return displayFault(
        `the HMI file has no component ${component} on page ${this.#page} (${hex})`,
        'give a component this name in the editor, or name another, or null, in texts or qr',
      );
    }
    if (page !== undefined && code === NO_PAGE) {
      return displayFault(`the HMI file has no page ${page} (${hex})`, 'correct pages, or add the page in the editor');
    }
    const what = REFUSALS.get(code) ?? 'unknown error';
    return displayFault(`the panel refused ${name}: ${what} (${hex})`, 'compare the HMI file with the configuration');
  }

  #restarted(): PayboxError {
    return displayFault(
      `the panel on ${this.#options.path} has restarted`,
      'check its power supply if this happens often',
    );
  }

  /** Touches and sleep need no reaction; a person who wires buttons wonders, so that each kind is told once. */
  #logOnce(code: number): void {
    if (this.#eventsLogged.has(code)) return;
    this.#eventsLogged.add(code);
    this.#io.log.info('panel-event-ignored', { path: this.#options.path, code: `0x${code.toString(16)}` });
  }
}

/** After power came: `00 00 00` and `88`. */
function isRestart(answer: Uint8Array): boolean {
  return (answer.length === 1 && answer[0] === READY) || (answer.length === 3 && answer.every((byte) => byte === 0));
}

function encoded(value: string): Uint8Array {
  return new TextEncoder().encode(value);
}

function command(instruction: string): Uint8Array {
  return Uint8Array.from([...encoded(instruction), ...END]);
}

const cutAnswer: Cut = (bytes) => {
  const end = bytes.findIndex((_, at) => END.every((byte, offset) => bytes[at + offset] === byte));
  return end < 0 ? undefined : { answer: bytes.slice(0, end), length: end + END.length };
};
