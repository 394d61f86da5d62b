import type { Picture } from '../engine/pictures.ts';
import { hex } from './character-panel.ts';
import { codeModules, codeOfModules, type Ecc, paperPicture, pictureOfDots } from './drawing.ts';
import { Emulator } from './emulator.ts';

const CHAR_DOTS = 12;
const LINE_DOTS = 30;
/** The white paper around a picture. */
const QUIET_DOTS = 24;
const LEVELS: readonly Ecc[] = ['low', 'medium', 'quartile', 'high'];
const QUIET_MODULES = 4;
const SLIPS_MAX = 100;
const BIT_4_AND_1 = 0x12;
const NO_PAPER = 0x60;

/** A printed QR: its text and its settings. */
export interface PrintedQr {
  payload: string;
  ecc: Ecc;
  moduleDots: number;
}

/** One slip of paper, or one screen. */
export interface Slip {
  lines: { text: string; double: boolean; centred: boolean }[];
  qr: PrintedQr | undefined;
  /** The rows of dots that were printed as a picture; undefined without one. */
  dots: boolean[][] | undefined;
}

/**
 * Emulates an ESC/POS device by its command reference, 576 dots wide by default. It knows only the commands listed
 * here. It records what a device would drop, break or misprint as a violation.
 */
export class EscposEmulator extends Emulator {
  /** The last slips that were cut, or screens that were cleared. */
  readonly slips: Slip[] = [];
  silent = false;
  paper = true;
  /** True if the printer makes a QR itself. Small printers print nothing, or the payload, in its place. */
  makesQr = true;
  current: Slip = { lines: [], qr: undefined, dots: undefined };
  readonly #send: (bytes: Uint8Array) => void;
  readonly #dots: number;
  #pending: number[] = [];
  #line = '';
  #double = false;
  #centred = false;
  #model2 = false;
  #moduleDots = 3;
  #ecc: PrintedQr['ecc'] = 'low';
  #stored: string | undefined;
  /** The number of dots from line to line. */
  #lineDots = LINE_DOTS;
  #stripe: boolean[][] | undefined;

  constructor(send: (bytes: Uint8Array) => void, dots = 576) {
    super();
    this.#send = send;
    this.#dots = dots;
  }

  /** Clears the screen and drops an unfinished slip. Slips that were cut remain. */
  restart(): void {
    this.#pending = [];
    this.#initialise();
    this.#centred = false;
    this.current = { lines: [], qr: undefined, dots: undefined };
  }

  receive(bytes: Uint8Array): void {
    for (const byte of bytes) {
      const command = [...this.#pending, byte];
      this.#pending = this.#take(command) ? [] : command;
    }
  }

  /** Runs a command. Returns whether it is complete. */
  #take(command: readonly number[]): boolean {
    const [first = 0, second, third] = command;
    if (first >= 0x20 && first < 0x7f) this.#line += String.fromCharCode(first);
    else if (first === 0x0a) this.#endLine();
    else if (first === 0x0c) this.#end();
    else if (![0, 0x10, 0x1b, 0x1d].includes(first)) this.#refuse(command);
    else if (first !== 0) {
      if (second === undefined) return false;
      if (first === 0x1b && second === 0x40) this.#initialise();
      else if (first === 0x1b && second === 0x32) this.#lineDots = LINE_DOTS;
      else if (third === undefined) return false;
      else if (first === 0x10) this.#status(command);
      else if (first === 0x1b && second === 0x33) this.#lineDots = third;
      else if (first === 0x1b && second === 0x2a) return this.#columns(command);
      else if (first === 0x1b) this.#escape(second, third, command);
      else if (second === 0x21) this.#size(third, command);
      else return this.#long(second, command);
    }
    return true;
  }

  #status(command: readonly number[]): void {
    if (command[1] !== 4 || command[2] !== 4) this.#refuse(command);
    else if (!this.silent) this.#send(Uint8Array.of(BIT_4_AND_1 | (this.paper ? 0 : NO_PAPER)));
  }

  #escape(name: number, value: number, command: readonly number[]): void {
    if (name === 0x61 && value <= 2 && this.#line === '') this.#centred = value === 1;
    else if (name === 0x64 && this.#line === '') this.#end();
    else this.#refuse(command);
  }

  #size(value: number, command: readonly number[]): void {
    if (value !== 0 && value !== 0x11) this.#refuse(command);
    this.#double = value === 0x11;
  }

  /** Runs the commands GS V and GS ( k. */
  #long(name: number, command: readonly number[]): boolean {
    if (name === 0x56) {
      if (command.length < 4) return false;
      if (command[2] !== 66 || this.#line !== '') this.#refuse(command);
      this.#end();
      return true;
    }
    if (name === 0x76) return this.#raster(command);
    if (name !== 0x28 || command[2] !== 0x6b) return this.#refuse(command);
    if (command.length < 5) return false;
    const length = (command[3] ?? 0) + (command[4] ?? 0) * 256;
    if (command.length < 5 + length) return false;
    this.#symbol(command.slice(5), command);
    return true;
  }

  /** Runs GS v 0: prints a picture row by row, at once. The printer must have no unfinished line. */
  #raster(command: readonly number[]): boolean {
    if (command.length < 8) return false;
    const [, , , mode = 0, widthLow = 0, widthHigh = 0, linesLow = 0, linesHigh = 0] = command;
    const [width, lines] = [widthLow + 256 * widthHigh, linesLow + 256 * linesHigh];
    if (command.length < 8 + width * lines) return false;
    if (command[2] !== 0x30 || (mode !== 0 && mode !== 3) || this.#line !== '')
      return this.#refuse(command.slice(0, 8));
    const times = mode === 3 ? 2 : 1;
    for (let y = 0; y < lines; y += 1) {
      const row = bitsOf(command.slice(8 + y * width, 8 + (y + 1) * width)).flatMap((it) =>
        Array<boolean>(times).fill(it),
      );
      for (let time = 0; time < times; time += 1) this.#addDots(row);
    }
    return true;
  }

  /** Runs ESC *: columns of 24 dots, which the next line feed prints. */
  #columns(command: readonly number[]): boolean {
    if (command.length < 5) return false;
    const [, , density = 0, low = 0, high = 0] = command;
    const count = low + 256 * high;
    if (command.length < 5 + 3 * count) return false;
    if ((density !== 32 && density !== 33) || this.#line !== '') return this.#refuse(command.slice(0, 5));
    const times = density === 32 ? 2 : 1;
    const columns = Array.from({ length: count }, (_, x) => bitsOf(command.slice(5 + 3 * x, 8 + 3 * x)));
    this.#stripe = Array.from({ length: 24 }, (_, y) =>
      columns.flatMap((column) => Array<boolean>(times).fill(column[y] === true)),
    );
    return true;
  }

  #addDots(row: boolean[]): void {
    const width = row.findLastIndex((it) => it) + 1;
    if (width > this.#dots) this.violation(`a picture of ${width} dots on ${this.#dots}`);
    this.current.dots = [...(this.current.dots ?? []), row];
  }

  #symbol([kind, name, ...values]: readonly number[], command: readonly number[]): void {
    const [value = -1] = values;
    const single = values.length === 1;
    if (kind !== 0x31) this.#refuse(command);
    else if (name === 0x41 && values.length === 2 && value === 0x32 && values[1] === 0) this.#model2 = true;
    else if (name === 0x43 && single && value >= 1 && value <= 16) this.#moduleDots = value;
    else if (name === 0x45 && single && value >= 0x30 && value <= 0x33) this.#ecc = LEVELS[value - 0x30] ?? 'low';
    else if (name === 0x50 && value === 0x30 && values.length > 1) {
      this.#stored = Buffer.from(values.slice(1)).toString('utf8');
    } else if (name === 0x51 && single && value === 0x30) this.#printSymbol();
    else this.#refuse(command);
  }

  /** Prints the QR. A device prints nothing when the QR is too wide or when the line before it is unfinished. */
  #printSymbol(): void {
    if (!this.makesQr) return;
    if (this.#stored === undefined || !this.#model2 || this.#line !== '' || this.current.qr !== undefined) {
      this.violation('a code that does not print');
      return;
    }
    const qr: PrintedQr = { payload: this.#stored, ecc: this.#ecc, moduleDots: this.#moduleDots };
    const width = (codeModules(qr.payload, qr.ecc) ?? Number.POSITIVE_INFINITY) * qr.moduleDots;
    if (width > this.#dots) this.violation(`a code of ${width} dots on ${this.#dots}`);
    this.current.qr = qr;
  }

  #initialise(): void {
    this.#line = '';
    this.#double = false;
    this.#centred = false;
    this.#model2 = false;
    this.#moduleDots = 3;
    this.#ecc = 'low';
    this.#stored = undefined;
    this.#lineDots = LINE_DOTS;
    this.#stripe = undefined;
  }

  #endLine(): void {
    const stripe = this.#stripe;
    this.#stripe = undefined;
    if (stripe !== undefined) {
      if (this.#lineDots > stripe.length)
        this.violation(`a gap of ${this.#lineDots - stripe.length} dots in a picture`);
      for (const row of stripe) this.#addDots(row);
      return;
    }
    const text = this.#line;
    this.#line = '';
    const width = text.length * CHAR_DOTS * (this.#double ? 2 : 1);
    if (width > this.#dots) this.violation(`a line of ${width} dots: ${text}`);
    this.current.lines.push({ text, double: this.#double, centred: this.#centred });
  }

  #end(): void {
    if (this.current.lines.length > 0) this.slips.push(this.current);
    if (this.slips.length > SLIPS_MAX) this.slips.shift();
    this.current = { lines: [], qr: undefined, dots: undefined };
  }

  #refuse(command: readonly number[]): true {
    this.violation(`unknown: ${hex(command)}`);
    return true;
  }

  /** Returns the last thing that a person sees: the screen, or else the last slip. */
  last(): Slip | undefined {
    return this.current.lines.length > 0 ? this.current : this.slips.at(-1);
  }

  code(): Picture | undefined {
    const { qr, dots } = this.last() ?? {};
    if (dots !== undefined) return pictureOfDots(dots, 1, QUIET_DOTS);
    return qr === undefined ? undefined : pictureOf(qr, QUIET_MODULES);
  }

  picture(): Picture {
    return paperPicture(this.#dots, this.last()?.lines ?? [], this.code());
  }

  shownTexts(): string[] {
    return this.last()?.lines.map(({ text }) => text) ?? [];
  }
}

/** Returns the printed QR with this margin; undefined when the text is too long. */
export function pictureOf({ payload, ecc, moduleDots }: PrintedQr, quietModules: number): Picture | undefined {
  return codeOfModules(payload, { ecc, modulePixels: moduleDots, quietModules });
}

/** Returns the dots of bytes, the first dot in the highest bit. */
function bitsOf(bytes: readonly number[]): boolean[] {
  return bytes.flatMap((byte) => Array.from({ length: 8 }, (_, bit) => (byte & (0x80 >> bit)) !== 0));
}
