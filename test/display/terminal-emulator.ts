import { Writable } from 'node:stream';
import type { Picture } from './pictures.ts';

interface EmulatedCell {
  char: string;
  ink: number;
  paper: number;
}

export interface Theme {
  ink: number;
  paper: number;
}

export const DARK: Theme = { ink: 0xcccccc, paper: 0x101010 };
export const LIGHT: Theme = { ink: 0x222222, paper: 0xfdf6e3 };

const CELL = { width: 6, height: 12 };

/**
 * A terminal that understands little and forgives nothing: it throws on any sequence or character that it does not
 * know, and on text that runs over the right edge. As in real ones, the cursor stays on the last column after
 * that is filled, and erasing from there takes the last character away.
 */
export class TerminalEmulator extends Writable {
  readonly isTTY = true;
  columns: number;
  rows: number;
  readonly #theme: Theme;
  readonly #colorBits: number;
  readonly scrollback: string[] = [];
  bytes = 0;
  cursorVisible = true;
  #grid: EmulatedCell[][];
  #x = 0;
  #y = 0;
  #full = false;
  #ink: number;
  #paper: number;

  constructor(columns: number, rows: number, theme: Theme, colorBits: number) {
    super({ decodeStrings: false });
    this.columns = columns;
    this.rows = rows;
    this.#theme = theme;
    this.#colorBits = colorBits;
    this.#ink = theme.ink;
    this.#paper = theme.paper;
    this.#grid = Array.from({ length: rows }, () => this.#blankRow());
  }

  getColorDepth(): number {
    return this.#colorBits;
  }

  /** Cuts or adds columns at the right and rows at the bottom, and tells the program. */
  resize(columns: number, rows: number): void {
    this.columns = columns;
    this.rows = rows;
    this.#grid = this.#grid.map((row) => [...row.slice(0, columns), ...this.#blankRow().slice(row.length)]);
    this.scrollback.push(...this.#grid.splice(0, Math.max(0, this.#grid.length - rows)).map(textOf));
    while (this.#grid.length < rows) this.#grid.push(this.#blankRow());
    this.#x = Math.min(this.#x, columns - 1);
    this.#y = Math.min(this.#y, rows - 1);
    this.emit('resize');
  }

  override _write(chunk: string | Buffer, _encoding: BufferEncoding, done: () => void): void {
    const text = chunk.toString();
    this.bytes += Buffer.byteLength(text);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what a terminal reads
    for (const token of text.match(/\x1b\[[\d;?]*[A-Za-z]|[\s\S]/gu) ?? []) this.#take(token);
    done();
  }

  #take(token: string): void {
    if (token === '\r') {
      this.#x = 0;
      this.#full = false;
    } else if (token === '\n') {
      if (this.#y === this.rows - 1) this.#scroll();
      else this.#y += 1;
    } else if (token.length > 2) {
      this.#control(token.slice(2, -1), token.slice(-1));
    } else {
      this.#print(token);
    }
  }

  #control(parameters: string, final: string): void {
    if (final === 'm') this.#colors(parameters.split(';').map(Number));
    else if (final === 'A' && /^[1-9]\d*$/.test(parameters)) this.#y = Math.max(0, this.#y - Number(parameters));
    else if (final === 'K' && parameters === '') this.#erase(this.#y, this.#x);
    else if (final === 'J' && parameters === '') {
      this.#erase(this.#y, this.#x);
      for (let y = this.#y + 1; y < this.rows; y += 1) this.#erase(y, 0);
    } else if (parameters === '?25' && final === 'h') this.cursorVisible = true;
    else if (parameters === '?25' && final === 'l') this.cursorVisible = false;
    else throw new Error(`unknown sequence: CSI ${parameters}${final}`);
  }

  #colors(codes: number[]): void {
    if (codes.length === 1 && codes[0] === 0) {
      this.#ink = this.#theme.ink;
      this.#paper = this.#theme.paper;
      return;
    }
    const rest = [...codes];
    while (rest.length > 0) {
      const [target, mode] = rest.splice(0, 2);
      let color: number;
      if (mode === 2 && this.#colorBits === 24) {
        const [red = 0, green = 0, blue = 0] = rest.splice(0, 3);
        color = (red << 16) | (green << 8) | blue;
      } else if (mode === 5) {
        color = cubeColor(rest.shift() ?? -1);
      } else {
        throw new Error(`unknown colour: ${codes.join(';')}`);
      }
      if (target === 38) this.#ink = color;
      else if (target === 48) this.#paper = color;
      else throw new Error(`unknown colour: ${codes.join(';')}`);
    }
  }

  #print(char: string): void {
    if (this.#full) throw new Error('text runs over the right edge');
    if (char < ' ' || /\p{C}|\p{M}/u.test(char)) throw new Error(`not printable: ${JSON.stringify(char)}`);
    const row = this.#grid[this.#y];
    if (row === undefined) throw new Error('the cursor is outside');
    row[this.#x] = { char, ink: this.#ink, paper: this.#paper };
    if (this.#x === this.columns - 1) this.#full = true;
    else this.#x += 1;
  }

  #erase(y: number, from: number): void {
    this.#grid[y]?.fill({ char: ' ', ink: this.#theme.ink, paper: this.#paper }, from);
  }

  #scroll(): void {
    const gone = this.#grid.shift();
    if (gone !== undefined) this.scrollback.push(textOf(gone));
    this.#grid.push(this.#blankRow());
  }

  #blankRow(): EmulatedCell[] {
    return Array.from({ length: this.columns }, () => ({ char: ' ', ...this.#theme }));
  }

  /** What one sees, line by line. */
  text(): string[] {
    return this.#grid.map(textOf);
  }

  cells(): readonly EmulatedCell[][] {
    return this.#grid;
  }

  /** A photograph of the window, the window's own colour around it. */
  picture(): Picture {
    const border = CELL.width * 2;
    const width = this.columns * CELL.width + 2 * border;
    const height = this.rows * CELL.height + 2 * border;
    const data = new Uint8Array(width * height * 4);
    for (let y = 0; y < height; y += 1) {
      for (let x = 0; x < width; x += 1) {
        const row = this.#grid[Math.floor((y - border) / CELL.height)];
        const cell = row?.[Math.floor((x - border) / CELL.width)];
        const upper = (y - border) % CELL.height < CELL.height / 2;
        const color = cell === undefined ? this.#theme.paper : cell.char === '▀' && upper ? cell.ink : cell.paper;
        data.set([color >> 16, (color >> 8) & 0xff, color & 0xff, 255], (y * width + x) * 4);
      }
    }
    return { width, height, data };
  }
}

function textOf(row: readonly EmulatedCell[]): string {
  return row
    .map(({ char }) => char)
    .join('')
    .trimEnd();
}

/** The colour cube that every 256-colour terminal has; the entries before it differ between terminals. */
function cubeColor(index: number): number {
  if (!(index >= 16 && index <= 231)) throw new Error(`colour ${index} is not of the cube`);
  const steps = [0, 95, 135, 175, 215, 255];
  const at = (place: number) => steps[Math.floor((index - 16) / place) % 6] ?? 0;
  return (at(36) << 16) | (at(6) << 8) | at(1);
}
