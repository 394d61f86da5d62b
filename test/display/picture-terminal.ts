import { Writable } from 'node:stream';
import { inflateSync } from 'node:zlib';
import type { TerminalInput } from '../../src/device/display/contract.ts';
import type { Picture } from './pictures.ts';

const CELL = { width: 10, height: 20 };
/** A grey of 16, as four bytes. */
const PAPER = 0xff101010;

/** In this order: a kitty command and its payload, sixels, a CSI sequence, the cursor kept or put back, one character. */
const TOKENS = new RegExp(
  [
    '\\x1b_G([^;\\x1b]*)(?:;([^\\x1b]*))?\\x1b\\\\',
    '\\x1bP([^\\x1b]*)\\x1b\\\\',
    '\\x1b\\[([\\d;?]*)([A-Za-z])',
    '\\x1b([78])',
    '([\\s\\S])',
  ].join('|'),
  'gu',
);

/** What it answers to each query, nothing where a part is missing; `delayed` answers wait for `answerLate`. */
export interface Answers {
  kitty?: string;
  cell?: string;
  da1?: string;
  delayed?: true;
}

/**
 * A terminal that draws pictures: kitty graphics and sixels, decoded from their manuals. It throws on any sequence that it
 * does not know, on pictures that are cut or do not keep to their declared size, and on colours that nobody defined.
 */
export class PictureTerminal extends Writable {
  readonly isTTY = true;
  columns: number;
  rows: number;
  readonly #answers: Answers;
  readonly #screen: Uint8Array;
  readonly #listeners = new Set<(bytes: Uint8Array) => void>();
  readonly #late: string[] = [];
  #x = 0;
  #y = 0;
  #saved: [number, number] | undefined;
  #chunks: string[] = [];
  #head = new Map<string, string>();
  pictures = 0;
  bytes = 0;
  cursorVisible = true;

  constructor(columns: number, rows: number, answers: Answers) {
    super({ decodeStrings: false });
    this.columns = columns;
    this.rows = rows;
    this.#answers = answers;
    this.#screen = new Uint8Array(columns * CELL.width * rows * CELL.height * 4);
    this.#wipe(0);
  }

  readonly input: TerminalInput = {
    onData: (listener) => {
      this.#listeners.add(listener);
      return () => this.#listeners.delete(listener);
    },
  };

  get listeningCount(): number {
    return this.#listeners.size;
  }

  getColorDepth(): number {
    return 24;
  }

  /** Sends what was held back. */
  answerLate(): void {
    for (const text of this.#late.splice(0)) this.#send(text);
  }

  picture(): Picture {
    return { width: this.columns * CELL.width, height: this.rows * CELL.height, data: this.#screen };
  }

  override _write(chunk: string | Buffer, _encoding: BufferEncoding, done: () => void): void {
    const text = chunk.toString();
    this.bytes += text.length;
    for (const [, keys, payload, sixels, parameters, final, cursor, char] of text.matchAll(TOKENS)) {
      if (keys !== undefined) this.#kitty(keys, payload ?? '');
      else if (sixels !== undefined) this.#sixel(sixels);
      else if (final !== undefined) this.#control(parameters ?? '', final);
      else if (cursor === '7') this.#saved = [this.#x, this.#y];
      else if (cursor === '8') [this.#x, this.#y] = this.#saved ?? [0, 0];
      else this.#print(char ?? '');
    }
    done();
  }

  #print(char: string): void {
    if (char === '\r') this.#x = 0;
    else if (char === '\n') {
      if (this.#y < this.rows - 1) this.#y += 1;
      else this.#scroll();
    } else if (/^[\x20-\x7e▀]$/u.test(char)) this.#x += 1;
    else throw new Error(`not printable: ${JSON.stringify(char)}`);
  }

  #control(parameters: string, final: string): void {
    const control = `${parameters}${final}`;
    if (control === '16t') this.#answer(this.#answers.cell);
    else if (control === 'c') this.#answer(this.#answers.da1);
    else if (/^\d+A$/.test(control)) this.#y = Math.max(0, this.#y - Number(parameters));
    else if (control === 'J') this.#wipe(this.#y);
    else if (control === '?25l' || control === '?25h') this.cursorVisible = final === 'h';
    else if (final !== 'm' && control !== 'K') throw new Error(`unknown sequence: CSI ${control}`);
  }

  #answer(text: string | undefined): void {
    if (text === undefined) return;
    if (this.#answers.delayed) this.#late.push(text);
    else queueMicrotask(() => this.#send(text));
  }

  #send(text: string): void {
    // In two portions, as a terminal may.
    const bytes = Buffer.from(text, 'latin1');
    for (const part of [bytes.subarray(0, 3), bytes.subarray(3)]) for (const each of this.#listeners) each(part);
  }

  #kitty(keys: string, payload: string): void {
    const given = new Map(keys.split(',').map((pair) => pair.split('=') as [string, string]));
    if (given.get('a') === 'q') {
      this.#answer(this.#answers.kitty?.replace('ID', given.get('i') ?? ''));
      return;
    }
    if (given.get('a') === 'd') {
      this.#wipe(0);
      return;
    }
    if (payload.length > 4096) throw new Error(`a chunk of ${payload.length} characters`);
    if (given.size > 1) this.#head = given;
    this.#chunks.push(payload);
    if (given.get('m') === '1') {
      if (payload.length % 4 !== 0) throw new Error('a chunk that is no whole base64');
      return;
    }
    const head = (key: string) => this.#head.get(key);
    const width = Number(head('s'));
    const height = Number(head('v'));
    const odd = head('a') !== 'T' || head('f') !== '24' || head('o') !== 'z' || head('C') !== '1' || head('q') !== '2';
    if (odd) throw new Error(`not as agreed: ${[...this.#head].join(' ')}`);
    const pixels = inflateSync(Buffer.from(this.#chunks.splice(0).join(''), 'base64'));
    if (pixels.length !== width * height * 3) throw new Error(`${pixels.length} bytes for ${width} x ${height}`);
    for (let y = 0, at = 0; y < height; y += 1) {
      for (let x = 0; x < width; x += 1, at += 3) this.#set(x, y, pixels, at);
    }
    this.pictures += 1;
  }

  #sixel(text: string): void {
    const start = /^0;1;0q"1;1;(\d+);(\d+)/.exec(text);
    if (start === null) throw new Error('no raster attributes');
    const [width, height] = [Number(start[1]), Number(start[2])];
    const palette = new Map<number, number[]>();
    let [x, top, color] = [0, 0, -1];
    const tokens = /#(\d+);2;(\d+);(\d+);(\d+)|#(\d+)|!(\d+)([?-~])|([?-~])|([$-])|([\s\S])/g;
    for (const [all, entry, r, g, b, chosen, run, runChar, one, move] of text.slice(start[0].length).matchAll(tokens)) {
      if (entry !== undefined)
        palette.set(
          Number(entry),
          [r, g, b].map((each) => Math.round(Number(each) * 2.55)),
        );
      else if (chosen !== undefined) color = Number(chosen);
      else if (move !== undefined) {
        x = 0;
        if (move === '-') top += 6;
      } else {
        const bits = ((runChar ?? one)?.charCodeAt(0) ?? 0) - 63;
        if (!(bits >= 0 && bits < 64)) throw new Error(`no sixel: ${all}`);
        const rgb = palette.get(color);
        if (rgb === undefined || palette.size > 256) throw new Error(`no colour ${color}`);
        for (let count = Number(run ?? 1); count > 0; count -= 1, x += 1) {
          if (x >= width) throw new Error('wider than declared');
          for (let bit = 0; bit < 6; bit += 1) {
            if (!(bits & (1 << bit))) continue;
            if (top + bit >= height) throw new Error('higher than declared');
            this.#set(x, top + bit, rgb);
          }
        }
      }
    }
    this.pictures += 1;
    // As with sixel scrolling: the cursor goes to the line after the picture.
    this.#y = Math.min(this.rows - 1, this.#y + Math.ceil(height / CELL.height));
  }

  /** Without a copy of each pixel's three bytes from `at`: there are millions. */
  #set(x: number, y: number, rgb: ArrayLike<number>, at = 0): void {
    const width = this.columns * CELL.width;
    const toX = x + this.#x * CELL.width;
    const toY = y + this.#y * CELL.height;
    if (toX >= width || toY >= this.rows * CELL.height) throw new Error('the picture leaves the window');
    const to = (toY * width + toX) * 4;
    for (let channel = 0; channel < 3; channel += 1) this.#screen[to + channel] = rgb[at + channel] ?? 0;
    this.#screen[to + 3] = 255;
  }

  #wipe(fromRow: number): void {
    new Uint32Array(this.#screen.buffer).fill(PAPER, fromRow * CELL.height * this.columns * CELL.width);
  }

  #scroll(): void {
    const line = CELL.height * this.columns * CELL.width * 4;
    this.#screen.copyWithin(0, line);
    this.#wipe(this.rows - 1);
  }
}
