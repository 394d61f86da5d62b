import { z } from 'zod';
import type { Display, DisplayDriver, DisplayIo, PanelFrame, PanelSurface, SerialLine } from '../contract.ts';
import { Dialogue } from '../io/answers.ts';
import { type Answer, crcOf, cutDgus, parseAnswer, readFrame, switchPage, writeFrame } from './dgus.ts';
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

const ANSWER_TIMEOUT_MS = 1_000;
/** A panel that has just got power needs a moment until it listens. */
const GREETINGS_MAX = 3;
/** The user's part of the variable memory (DGUS II): below are the system's registers. */
const VP_MIN = 0x1000;
const VP_MAX = 0xffff;
const BYTES_A_WORD = 2;
/** Bytes a frame may write so that the next one begins at a whole word; 249 is the limit. */
const CHUNK_BYTES_MAX = 248;
/** The QR control draws one of two versions, 7 and 14, whichever holds the bytes; a module has Unit_Pixels in both. */
const QR_MODULES = { small: 45, large: 73 };
const QR_SMALL_BYTES_MAX = 154;
/** Ends a text and a QR string. */
const TEXT_END = 0xff;
/** What stands in `markerVp` while the panel has not lost its memory. */
const MARKER = 0x5042;

const address = z.int().min(VP_MIN).max(VP_MAX);
const text = (vp: number) => address.nullable().default(vp);

const options = z
  .strictObject({
    path: serialPath,
    baudRate: z.int().min(3_225).max(3_225_600).default(115_200).describe('the rate of the panel, from its CFG file'),
    crc: z.boolean().default(false).describe('whether the CFG file turns the CRC of frames on'),
    encoding: z.enum(['unicode', 'ascii']).default('unicode').describe('Encode_Mode 5 of the text controls, or 0'),
    pages: eachScreen(z.int().min(0).max(VP_MAX).default(0)).prefault({}).describe('the page of each screen'),
    texts: z
      .strictObject({
        title: text(0x1000),
        amount: text(0x1080),
        content: text(0x1100),
        holder: text(0x1180),
        account: text(0x1200),
        timeLeft: text(0x1280),
        hint: text(0x1300),
        offline: text(0x1380),
      })
      .prefault({})
      .describe('the address (VP) of each text control, null to leave it out'),
    textWords: z.int().min(8).max(1_024).default(128).describe('words of memory that belong to each text'),
    qr: z
      .strictObject({
        vp: address.default(0x2000),
        sidePixels: z
          .int()
          .min(QR_MODULES.large)
          .max(1_024)
          .default(292)
          .describe('73 x Unit_Pixels of the QR control'),
        charsMax: z.int().min(20).max(458).default(458).describe('the longest payload that it takes'),
      })
      .nullable()
      .prefault({})
      .describe('the QR control'),
    markerVp: address.default(0x4f00).describe('one unused word, by which a restarted panel is noticed'),
  })
  .superRefine((given, context) => {
    const clash = overlapOf(placesOf(given));
    if (clash !== undefined) context.addIssue({ code: 'custom', path: clash.path, message: clash.message });
  });
type Options = z.infer<typeof options>;

/** DWIN DGUS II panels: variables in the panel's memory, each write acknowledged. */
export const dwin: DisplayDriver<Options> = {
  name: 'dwin',
  summary: 'a DWIN DGUS II serial panel that draws texts and the QR itself',
  options,
  example: options.parse({ path: '/dev/serial/by-id/usb-1a86_USB_Serial-if00-port0' }),
  open: async (given, io, signal) => {
    const { path, baudRate } = given;
    const line = await io.openSerial({ path, baudRate }, signal);
    try {
      const panel = new Dwin(given, line, io);
      await panel.greet(signal);
      return panel.display;
    } catch (error) {
      await line.close();
      throw error;
    }
  },
};

class Dwin {
  readonly display: Display;
  readonly #options: Options;
  readonly #io: DisplayIo;
  readonly #dialogue: Dialogue;
  readonly #shown = new Map<PanelText, string>();
  #page: number | undefined;
  /** Undefined: nobody knows. */
  #qrShown: string | null | undefined;
  #untilMs = 0;
  #touched = false;

  constructor(given: Options, line: SerialLine, io: DisplayIo) {
    this.#options = given;
    this.#io = io;
    const { path, baudRate, qr, encoding } = given;
    const square = qr && { ...qr, modulePixelsMax: Math.floor(qr.sidePixels / QR_MODULES.large), modulesFor };
    const surface: PanelSurface = { kind: 'panel', qr: square, accents: encoding === 'unicode' };
    this.display = new PanelDisplay(
      surface,
      line,
      path,
      io,
      (frame) => this.#show(frame),
      () => this.#emptyQr(),
    );
    const onUnasked = () => this.#logOnce();
    this.#dialogue = new Dialogue({ line, path, baudRate, clock: io.clock, cut: cutDgus, onUnasked });
  }

  /** Finds the panel. Throws a PayboxError `DISPLAY_FAULT`. */
  async greet(signal: AbortSignal): Promise<void> {
    const { path, baudRate, crc } = this.#options;
    for (let left = GREETINGS_MAX; left > 0; left -= 1) {
      signal.throwIfAborted();
      this.#untilMs = this.#io.clock.monotonicMs() + DRAW_TIMEOUT_MS;
      if ((await this.#readMarker()) !== undefined) return;
      this.#dialogue.forgetUnread();
    }
    throw displayFault(
      `the panel on ${path} does not answer at ${baudRate} baud ${crc ? 'with' : 'without'} CRC`,
      'check its power, that TX and RX are crossed, and that baudRate and crc are those of its CFG file',
    );
  }

  async #show(frame: PanelFrame): Promise<void> {
    this.#untilMs = this.#io.clock.monotonicMs() + DRAW_TIMEOUT_MS;
    const { pages, qr, path } = this.#options;
    const marker = await this.#readMarker();
    if (marker === undefined) throw displayFault(`the panel on ${path} did not answer`, 'check its power and cable');
    if (marker !== MARKER) await this.#beginAnew();
    const changesQr = qr !== null && frame.qrCode !== this.#qrShown;
    // A QR never stands beside the texts of another payment.
    if (changesQr) await this.#clearQr(qr.vp);
    for (const name of PANEL_TEXTS) await this.#setText(name, frame[name]);
    if (changesQr && frame.qrCode !== null) {
      const bytes = this.#encoded(frame.qrCode, 'ascii');
      // Half of it may be there when this fails.
      this.#qrShown = undefined;
      await this.#writeText(qr.vp, bytes);
      this.#qrShown = frame.qrCode;
    }
    const page = pages[frame.screen];
    if (page === this.#page) return;
    await this.#write(switchPage(page), `the switch to page ${page}`);
    this.#page = page;
  }

  async #emptyQr(): Promise<void> {
    const { qr } = this.#options;
    this.#untilMs = this.#io.clock.monotonicMs() + ANSWER_TIMEOUT_MS;
    if (qr !== null) await this.#clearQr(qr.vp);
  }

  async #clearQr(vp: number): Promise<void> {
    if (this.#qrShown !== null) await this.#writeText(vp, Uint8Array.of());
    this.#qrShown = null;
  }

  /** A panel that was without power has forgotten everything. */
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

  /** Writes a text and its end; a long one from its tail, so that no half of it is ever shown before it is whole. */
  async #writeText(vp: number, bytes: Uint8Array): Promise<void> {
    const whole = Uint8Array.from([...padded(bytes), TEXT_END, TEXT_END]);
    const starts = Array.from(
      { length: Math.ceil(whole.length / CHUNK_BYTES_MAX) },
      (_, index) => index * CHUNK_BYTES_MAX,
    );
    for (const start of starts.toReversed()) {
      const chunk = whole.slice(start, start + CHUNK_BYTES_MAX);
      const at = vp + start / BYTES_A_WORD;
      await this.#write(writeFrame(at, chunk), `${chunk.length} bytes for VP 0x${at.toString(16)}`);
    }
  }

  #encoded(value: string, encoding: Options['encoding']): Uint8Array {
    const units = Array.from({ length: value.length }, (_, index) => value.charCodeAt(index));
    if (encoding === 'unicode') return Uint8Array.from(units.flatMap((unit) => [unit >> 8, unit & 0xff]));
    if (/^[ -~]*$/.test(value)) return Uint8Array.from(units);
    throw displayFault('a text has characters that the panel cannot take', 'set encoding: unicode');
  }

  async #write(frame: Uint8Array, what: string): Promise<void> {
    if (await this.#ask(frame, (answer) => (answer.kind === 'done' ? true : undefined))) return;
    throw displayFault(
      `the panel on ${this.#options.path} did not acknowledge ${what}`,
      'check its power and cable, and that its CFG file has the answer to command 0x82 on',
    );
  }

  /** The word at `markerVp`; undefined when the panel does not answer. */
  #readMarker(): Promise<number | undefined> {
    const { markerVp } = this.#options;
    return this.#ask(readFrame(markerVp, 1), (answer) =>
      answer.kind === 'read' && answer.vp === markerVp ? answer.words[0] : undefined,
    );
  }

  #ask<T>(frame: Uint8Array, accept: (answer: Answer) => T | undefined): Promise<T | undefined> {
    const { crc } = this.#options;
    const leftMs = Math.max(1, this.#untilMs - this.#io.clock.monotonicMs());
    return this.#dialogue.ask(
      crc ? crcOf(frame) : frame,
      (bytes) => {
        const answer = parseAnswer(bytes, crc);
        return answer === undefined ? undefined : accept(answer);
      },
      Math.min(ANSWER_TIMEOUT_MS, leftMs),
    );
  }

  /** Touch controls upload their keys; a person who wires buttons wonders, so that it is told once. */
  #logOnce(): void {
    if (this.#touched) return;
    this.#touched = true;
    this.#io.log.info('panel-event-ignored', { path: this.#options.path });
  }
}

/** Modules on a side of the QR that the panel draws of so many bytes. */
function modulesFor(bytes: number): number {
  return bytes <= QR_SMALL_BYTES_MAX ? QR_MODULES.small : QR_MODULES.large;
}

/** Memory is written in whole words: an odd text gets its end one byte early. */
function padded(bytes: Uint8Array): Uint8Array {
  return bytes.length % BYTES_A_WORD === 0 ? bytes : Uint8Array.from([...bytes, TEXT_END]);
}

interface Place {
  path: (string | number)[];
  from: number;
  words: number;
}

function placesOf({
  texts,
  textWords,
  qr,
  markerVp,
}: Pick<Options, 'texts' | 'textWords' | 'qr' | 'markerVp'>): Place[] {
  const places: Place[] = [{ path: ['markerVp'], from: markerVp, words: 1 }];
  for (const [name, from] of Object.entries(texts)) {
    if (from !== null) places.push({ path: ['texts', name], from, words: textWords });
  }
  if (qr !== null) places.push({ path: ['qr', 'vp'], from: qr.vp, words: Math.ceil(qr.charsMax / BYTES_A_WORD) + 1 });
  return places;
}

/** Two places that share memory, or one that runs over its end. */
function overlapOf(places: readonly Place[]): { path: Place['path']; message: string } | undefined {
  const sorted = places.toSorted((a, b) => a.from - b.from);
  for (const [index, { path, from, words }] of sorted.entries()) {
    const next = sorted[index + 1];
    const end = from + words;
    if (next === undefined ? end > VP_MAX + 1 : end > next.from) {
      const what = next === undefined ? 'the end of the memory' : next.path.join('.');
      return { path, message: `expected its ${words} words from 0x${from.toString(16)} not to reach ${what}` };
    }
  }
  return undefined;
}
