import type { Picture } from '../engine/pictures.ts';
import { codeOf, panelPicture } from './drawing.ts';
import { Emulator } from './emulator.ts';

const END = Buffer.from([0xff, 0xff, 0xff]);
const BUFFER_BYTES_MAX = 1_024;
const SIZE = { width: 800, height: 480 };
const CODE_SIDE_PIXELS = 400;

/** A page of an HMI file: its components with their maximum text lengths. */
export interface HmiPage {
  name: string;
  texts: Readonly<Record<string, number>>;
  qr: { name: string; charsMax: number } | null;
}

const TEXTS = Object.fromEntries(Array.from({ length: 8 }, (_, index) => [`t${index}`, 100]));
const ONE_PAGE: readonly HmiPage[] = [{ name: 'main', texts: TEXTS, qr: { name: 'qr0', charsMax: 300 } }];

const DONE = 0x01;
const STRING = 0x70;
const PAGE = 0x66;
const ANSWERS_MANY = 2;

/**
 * Emulates a Nextion panel by its instruction set. It is stricter than the device: whatever a real panel would garble, cut or
 * accept silently is added to `violations`.
 */
export class NextionEmulator extends Emulator {
  /** While true, the panel sends no answers. */
  silent = false;
  greets = true;
  /** The panel answers this code to each command that begins with `to`, and does not execute it. */
  refusal: { to: string; code: number } | undefined;
  dim: number | undefined;
  readonly #send: (bytes: Uint8Array) => void;
  readonly #hmi: readonly HmiPage[];
  #buffer = Buffer.alloc(0);
  #answering = 2;
  #page: HmiPage;
  #texts = new Map<string, string>();
  #qrVisible = true;

  constructor(send: (bytes: Uint8Array) => void, hmi: readonly HmiPage[] = ONE_PAGE) {
    super();
    const [first] = hmi;
    if (first === undefined) throw new Error('an HMI file has a page');
    this.#send = send;
    this.#hmi = hmi;
    this.#page = first;
  }

  get pageName(): string {
    return this.#page.name;
  }

  /** Returns the text of a component; undefined when the current page has no such component. */
  text(component: string): string | undefined {
    return component in this.#page.texts ? (this.#texts.get(component) ?? '') : undefined;
  }

  shownTexts(): string[] {
    return Object.keys(this.#page.texts).map((name) => this.text(name) ?? '');
  }

  code(): Picture | undefined {
    const { qr } = this.#page;
    const text = qr === null ? '' : (this.#texts.get(qr.name) ?? '');
    return this.#qrVisible && text !== '' ? codeOf(text, CODE_SIDE_PIXELS) : undefined;
  }

  picture(): Picture {
    return panelPicture(SIZE, this.shownTexts(), this.code());
  }

  /** Restarts on an empty page 0 and sends the panel's two start-up messages. An HMI file can turn those off (`greets: false`). */
  restart(): void {
    this.dim = undefined;
    this.#buffer = Buffer.alloc(0);
    this.#answering = ANSWERS_MANY;
    this.#load(this.#hmi[0] ?? this.#page);
    if (!this.greets) return;
    this.say(0, 0, 0);
    this.say(0x88);
  }

  /** Simulates a touch that changes the page. */
  turnTo(name: string): void {
    this.#load(this.#hmi.find((page) => page.name === name) ?? this.#page);
  }

  /** Sends an unsolicited message; a touch is `65 pp cc ev`. */
  say(...bytes: number[]): void {
    this.#send(Uint8Array.from([...bytes, ...END]));
  }

  receive(bytes: Uint8Array): void {
    this.#buffer = Buffer.concat([this.#buffer, bytes]);
    if (this.#buffer.length > BUFFER_BYTES_MAX) {
      this.#buffer = Buffer.alloc(0);
      this.violation('more bytes than the buffer holds');
      this.#answer(0x24);
      return;
    }
    for (let end = this.#buffer.indexOf(END); end >= 0; end = this.#buffer.indexOf(END)) {
      const command = this.#buffer.subarray(0, end);
      this.#buffer = this.#buffer.subarray(end + END.length);
      if (command.length === 0) continue;
      if (this.#buffer.length > 0) this.violation(`${command} was not waited for`);
      this.#execute(command);
    }
  }

  #execute(bytes: Buffer): void {
    if (this.silent) return;
    let command: string;
    try {
      command = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    } catch {
      this.violation(`not UTF-8: ${bytes.toString('hex')}`);
      this.#answer(0x00);
      return;
    }
    if (this.refusal !== undefined && command.startsWith(this.refusal.to)) this.#answer(this.refusal.code);
    else this.#answer(this.#run(command));
  }

  /** Executes a command. Returns its answer code; undefined when the command answers by itself. */
  #run(command: string): number | undefined {
    const [, answering] = /^bkcmd=([0-3])$/.exec(command) ?? [];
    if (answering !== undefined) {
      this.#answering = Number(answering);
      return DONE;
    }
    const [, dim] = /^dim=(\d{1,3})$/.exec(command) ?? [];
    if (dim !== undefined) {
      if (Number(dim) > 100) this.violation(`dim of ${dim} percent`);
      this.dim = Number(dim);
      return DONE;
    }
    const [, page] = /^page (\w+)$/.exec(command) ?? [];
    if (page !== undefined) {
      const found = this.#hmi.find(({ name }, index) => name === page || String(index) === page);
      if (found === undefined) return 0x03;
      this.#load(found);
      return DONE;
    }
    if (command === 'sendme') {
      this.say(PAGE, this.#hmi.indexOf(this.#page));
      return undefined;
    }
    const [, hidden, visible] = /^vis (\w+),([01])$/.exec(command) ?? [];
    if (hidden !== undefined) {
      if (hidden !== this.#page.qr?.name) return 0x02;
      this.#qrVisible = visible === '1';
      return DONE;
    }
    const [, component, text] = /^(\w+)\.txt="(.*)"$/s.exec(command) ?? [];
    if (component !== undefined && text !== undefined) return this.#assign(component, text);
    const [, asked] = /^get (\w+)\.txt$/.exec(command) ?? [];
    if (asked !== undefined) return this.#tell(asked);
    this.violation(`unknown command ${command}`);
    return 0x00;
  }

  #assign(component: string, raw: string): number {
    const charsMax = component === this.#page.qr?.name ? this.#page.qr.charsMax : this.#page.texts[component];
    if (charsMax === undefined) return 0x1a;
    if (!/^(?:[^"\\]|\\["\\])*$/.test(raw)) {
      this.violation(`not escaped: ${raw}`);
      return 0x20;
    }
    const text = raw.replaceAll(/\\(["\\])/g, '$1');
    if (/\p{Cc}/u.test(text)) this.violation(`control characters in ${component}`);
    const bytes = Buffer.from(text);
    if (bytes.length > charsMax) this.violation(`${component} is cut to its txt_maxl of ${charsMax}`);
    this.#texts.set(component, bytes.subarray(0, charsMax).toString());
    return DONE;
  }

  /** Answers a query with the text itself and no code, whatever `bkcmd` is. */
  #tell(component: string): number | undefined {
    const isQr = component === this.#page.qr?.name;
    if (!isQr && !(component in this.#page.texts)) return 0x1a;
    this.say(STRING, ...Buffer.from(this.#texts.get(component) ?? ''));
    return undefined;
  }

  #load(page: HmiPage): void {
    this.#page = page;
    this.#texts = new Map();
    this.#qrVisible = true;
  }

  /** Sends an answer code as `bkcmd` asks for it: 0 sends no codes, 1 successes, 2 failures, 3 all. */
  #answer(code: number | undefined): void {
    if (code === undefined) return;
    const wanted = code === DONE ? [1, 3] : [2, 3];
    if (wanted.includes(this.#answering)) this.say(code);
  }
}
