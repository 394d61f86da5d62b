import type { PayboxError } from '../../../lib/errors.ts';
import type { Display, DisplayDriver, DisplayIo, PanelFrame, PanelSurface, SerialLine } from '../contract.ts';
import { displayFault } from '../fault.ts';
import { ANSWER_TIMEOUT_MS, Dialogue, holdsBytes } from '../io/answers.ts';
import {
  type Answer,
  BYTES_A_WORD,
  chunksOf,
  crcOf,
  cutDgus,
  FRAME_BYTES_MAX,
  PAGE_SHOWN,
  parseAnswer,
  readFrame,
  switchPage,
  writeFrame,
} from './dgus.ts';
import { type DwinOptions, dwinOptions, modulesFor, QR_MODULES } from './dwin-options.ts';
import {
  ASK_EVERY_MS,
  DRAW_TIMEOUT_MS,
  openPanel,
  PANEL_TEXTS,
  PATIENCE_MS,
  PanelDisplay,
  type PanelText,
  shortened,
} from './panel.ts';

/** After power-on a panel needs a moment until it answers. */
const GREETINGS_MAX = 3;
/** The driver makes at most this many attempts of a write that is not acknowledged, or not in the memory as written. */
const WRITES_MAX = 8;
/** The driver makes at most this many reads of a value that differs or does not come, because the answer may be garbled. */
const READS_MAX = 6;
/** A page that the panel must load appears some time after the answer to the switch. */
const PAGE_READS_MAX = 10;
const PAGE_READ_EVERY_MS = 50;
/** The end of a text and of a QR string. */
const TEXT_END = 0xff;
/** `markerVp` has this value while the panel has not lost its memory. */
const MARKER = 0x5042;

/**
 * Drives DWIN DGUS II panels by variables in the panel's memory. A panel without CRC acknowledges even a garbled write,
 * so the driver reads important values back. A frame counts as shown when QR, amount and page in the panel are right.
 * The panel does not report a loss of power, but reading the marker shows it.
 */
export const dwin: DisplayDriver<DwinOptions> = {
  name: 'dwin',
  summary: 'a DWIN DGUS II serial panel that draws texts and the QR itself',
  options: dwinOptions,
  example: dwinOptions.parse({ path: '/dev/serial/by-id/usb-1a86_USB_Serial-if00-port0' }),
  open: (given, io, signal) => openPanel(given, io, signal, (line) => new Dwin(given, line, io)),
};

class Dwin {
  readonly display: Display;
  readonly #options: DwinOptions;
  readonly #io: DisplayIo;
  readonly #dialogue: Dialogue;
  readonly #shown = new Map<PanelText, string>();
  #page: number | undefined;
  /** The QR on the panel; undefined while it is unknown. */
  #qrShown: string | null | undefined;
  /** The number of frames written since it was opened. */
  #writes = 0;
  /** The value that differed at the last check. */
  #wrong: string | undefined;
  #touched = false;

  constructor(given: DwinOptions, line: SerialLine, io: DisplayIo) {
    this.#options = given;
    this.#io = io;
    const { path, baudRate, qr, encoding } = given;
    const square = qr && { ...qr, modulePixelsMax: Math.floor(qr.sidePixels / QR_MODULES.large), modulesFor };
    const surface: PanelSurface = { kind: 'panel', qr: square, accents: encoding === 'unicode' };
    const show = (frame: PanelFrame) => this.#show(frame);
    this.display = new PanelDisplay(line, path, io, {
      surface,
      show,
      // With an intact marker and an unchanged frame, the driver reads only the marker.
      refresh: { everyMs: ASK_EVERY_MS, run: show },
      goodbye: () => this.#emptyQr(),
    });
    const onUnasked = () => this.#logOnce();
    this.#dialogue = new Dialogue({ line, path, baudRate, clock: io.clock, cut: cutDgus, onUnasked });
  }

  /** Finds the panel. Throws a PayboxError `DISPLAY_FAULT`. */
  async greet(signal: AbortSignal): Promise<void> {
    const { path, baudRate, crc } = this.#options;
    for (let left = GREETINGS_MAX; left > 0; left -= 1) {
      signal.throwIfAborted();
      this.#dialogue.limit(DRAW_TIMEOUT_MS);
      if ((await this.#readWord(this.#options.markerVp)) !== undefined) return;
      // The bytes complete half a frame of an earlier program. Otherwise the panel ignores them, because it waits for a
      // head.
      await this.#dialogue.send(new Uint8Array(FRAME_BYTES_MAX));
    }
    throw displayFault(
      `the panel on ${path} does not answer at ${baudRate} baud ${crc ? 'with' : 'without'} CRC`,
      'check its power, that TX and RX are crossed, and that baudRate and crc are those of its CFG file',
    );
  }

  async #show(frame: PanelFrame): Promise<void> {
    this.#dialogue.limit(DRAW_TIMEOUT_MS);
    const { path } = this.#options;
    let marker: number | undefined;
    for (let left = READS_MAX; left > 0 && marker === undefined; left -= 1) {
      marker = await this.#readWord(this.#options.markerVp);
    }
    if (marker === undefined) throw displayFault(`the panel on ${path} did not answer`, 'check its power and cable');
    if (marker !== MARKER) await this.#beginAnew();
    for (let left = WRITES_MAX; left > 0 && this.#dialogue.hasTime(); left -= 1) {
      const before = this.#writes;
      await this.#bringTo(frame);
      if (this.#writes === before) return;
      // The check comes last, because a write with a garbled address may have changed any variable.
      await this.#check(frame);
      if (this.#wrong === undefined) return;
    }
    throw this.#garbled(this.#wrong ?? 'its memory');
  }

  async #bringTo(frame: PanelFrame): Promise<void> {
    const { pages, qr } = this.#options;
    const changesQr = qr !== null && frame.qrCode !== this.#qrShown;
    // A QR must never be visible beside the texts of another payment.
    if (changesQr) await this.#clearQr(qr.vp);
    for (const name of PANEL_TEXTS) await this.#setText(name, frame[name]);
    if (changesQr && frame.qrCode !== null) {
      const bytes = this.#encoded(frame.qrCode, 'ascii');
      // If this fails, half of the QR may be written.
      this.#qrShown = undefined;
      await this.#writeText(qr.vp, bytes);
      this.#qrShown = frame.qrCode;
    }
    const page = pages[frame.screen];
    if (page === this.#page) return;
    this.#page = undefined;
    await this.#write(switchPage(page), `the switch to page ${page}`);
    if (await this.#showsPage(page)) this.#page = page;
  }

  /** Reads back the values that could mislead a person. `#wrong` then names the value that the next attempt writes again. */
  async #check({ qrCode }: PanelFrame): Promise<void> {
    const { qr, texts, encoding } = this.#options;
    this.#wrong = this.#page === undefined ? 'its page' : undefined;
    if (qr !== null && !(await this.#holds(qr.vp, ended(this.#encoded(qrCode ?? '', 'ascii'))))) {
      this.#qrShown = undefined;
      this.#wrong = 'its QR';
    }
    const amount = this.#shown.get('amount');
    if (qrCode === null || texts.amount === null || amount === undefined) return;
    if (await this.#holds(texts.amount, ended(this.#encoded(amount, encoding)))) return;
    this.#shown.delete('amount');
    this.#wrong ??= 'its amount';
  }

  async #emptyQr(): Promise<void> {
    const { qr } = this.#options;
    this.#dialogue.limit(ANSWER_TIMEOUT_MS);
    if (qr !== null) await this.#clearQr(qr.vp);
  }

  async #clearQr(vp: number): Promise<void> {
    if (this.#qrShown === null) return;
    this.#qrShown = undefined;
    for (let left = WRITES_MAX; left > 0 && this.#qrShown !== null; left -= 1) {
      await this.#writeText(vp, Uint8Array.of());
      if (await this.#holds(vp, ended(Uint8Array.of()))) this.#qrShown = null;
    }
    if (this.#qrShown !== null) throw this.#garbled('the end of its QR');
  }

  #garbled(what: string): PayboxError {
    const { path, crc } = this.#options;
    return displayFault(
      `the panel on ${path} does not hold ${what} as it was written`,
      crc ? 'check its cable and ground' : 'check its cable and ground, and turn the CRC on, in its CFG file and here',
    );
  }

  /** Forgets all values, because a panel that was without power has lost them. */
  async #beginAnew(): Promise<void> {
    this.#shown.clear();
    this.#page = undefined;
    this.#qrShown = undefined;
    await this.#write(writeFrame(this.#options.markerVp, Uint8Array.of(MARKER >> 8, MARKER & 0xff)), 'its marker');
  }

  async #setText(name: PanelText, given: string): Promise<void> {
    const { texts, encoding, textWords } = this.#options;
    const vp = texts[name];
    if (vp === null) return;
    const room = textWords * BYTES_A_WORD - BYTES_A_WORD;
    const fits = (value: string) => padded(this.#encoded(value, encoding)).length <= room;
    const value = shortened(given, fits, encoding === 'unicode' ? '…' : '~');
    if (this.#shown.get(name) === value) return;
    await this.#writeText(vp, this.#encoded(value, encoding));
    this.#shown.set(name, value);
  }

  /** Writes a text and its end. A long text is written from its tail, so that its first half is never visible alone. */
  async #writeText(vp: number, bytes: Uint8Array): Promise<void> {
    for (const { at, chunk } of chunksOf(vp, ended(bytes)).toReversed()) {
      await this.#write(writeFrame(at, chunk), `${chunk.length} bytes for VP 0x${at.toString(16)}`);
    }
  }

  #encoded(value: string, encoding: DwinOptions['encoding']): Uint8Array {
    const units = Array.from({ length: value.length }, (_, index) => value.charCodeAt(index));
    if (encoding === 'unicode') return Uint8Array.from(units.flatMap((unit) => [unit >> 8, unit & 0xff]));
    if (/^[ -~]*$/.test(value)) return Uint8Array.from(units);
    throw displayFault('a text has characters that the panel cannot take', 'set encoding: unicode');
  }

  /** Writes a frame. A panel with CRC does not answer a garbled one. */
  async #write(frame: Uint8Array, what: string): Promise<void> {
    for (let left = WRITES_MAX; left > 0 && this.#dialogue.hasTime(); left -= 1) {
      this.#writes += 1;
      if (await this.#ask(frame, (answer) => (answer.kind === 'done' ? true : undefined))) return;
    }
    throw displayFault(
      `the panel on ${this.#options.path} did not acknowledge ${what}`,
      'check its power and cable, and that its CFG file has the answer to command 0x82 on',
    );
  }

  /** Returns whether the panel's memory from `vp` contains these bytes. */
  async #holds(vp: number, bytes: Uint8Array): Promise<boolean> {
    for (const { at, chunk } of chunksOf(vp, bytes)) {
      const read = async () => (this.#dialogue.hasTime() ? this.#read(at, chunk.length) : undefined);
      if (!(await holdsBytes(chunk, READS_MAX, read))) return false;
    }
    return true;
  }

  async #showsPage(page: number): Promise<boolean> {
    for (let left = PAGE_READS_MAX; left > 0; left -= 1) {
      if ((await this.#readWord(PAGE_SHOWN)) === page) return true;
      await this.#io.clock.sleep(PAGE_READ_EVERY_MS);
    }
    return false;
  }

  /** Returns a word; undefined if the panel does not answer. */
  async #readWord(vp: number): Promise<number | undefined> {
    const [high, low] = (await this.#read(vp, BYTES_A_WORD)) ?? [];
    return high === undefined || low === undefined ? undefined : (high << 8) | low;
  }

  #read(vp: number, bytes: number): Promise<number[] | undefined> {
    const accept = (answer: Answer) =>
      answer.kind === 'read' && answer.vp === vp && answer.bytes.length === bytes ? answer.bytes : undefined;
    return this.#ask(readFrame(vp, bytes / BYTES_A_WORD), accept, bytes);
  }

  #ask<T>(frame: Uint8Array, accept: (answer: Answer) => T | undefined, answerBytes = 0): Promise<T | undefined> {
    const { crc } = this.#options;
    const heard = (bytes: Uint8Array) => {
      const answer = parseAnswer(bytes, crc);
      return answer && accept(answer);
    };
    return this.#dialogue.ask(crc ? crcOf(frame) : frame, heard, { answerBytes, timeoutMs: PATIENCE_MS });
  }

  /** Logs once that touch controls send their keys, as a hint for the person who configures them. */
  #logOnce(): void {
    if (this.#touched) return;
    this.#touched = true;
    this.#io.log.info('panel-event-ignored', { path: this.#options.path });
  }
}

/** Returns bytes in whole words, as memory is written. A text of odd length gets one more end byte. */
function padded(bytes: Uint8Array): Uint8Array {
  return bytes.length % BYTES_A_WORD === 0 ? bytes : Uint8Array.from([...bytes, TEXT_END]);
}

/** Returns a text with its end, in whole words. */
function ended(bytes: Uint8Array): Uint8Array {
  return Uint8Array.from([...padded(bytes), TEXT_END, TEXT_END]);
}
