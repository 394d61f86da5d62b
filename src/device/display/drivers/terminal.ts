import type { WriteStream } from 'node:tty';
import { z } from 'zod';
import { MissingPeerError } from '../../../lib/errors.ts';
import { mayHoldQr, type Scene } from '../../scene.ts';
import type { Cell, CharacterFrame, CharacterSurface, Display, DisplayDriver, DisplayIo, Frame } from '../contract.ts';
import { closedFault, displayFault } from '../fault.ts';
import { askTerminal } from './terminal-graphics.ts';
import { TerminalPicture } from './terminal-picture.ts';

const COLUMNS_MAX = 100;
const ROWS_MAX = 60;
/** A terminal that does not report its own size has this one. */
const COLUMNS_DEFAULT = 80;
const ROWS_DEFAULT = 24;
const TRUE_COLOR_BITS = 24;
/** Two modules of a QR, one above the other. */
const MODULES = '▀';
const PLAIN = '\x1b[0m';

/** The colours that a terminal can show; `none` under NO_COLOR. */
type Colors = 'true' | 'cube' | 'none';

const options = z.strictObject({
  /** Fixed sizes, for a terminal that reports a wrong one. */
  columns: z.int().min(1).max(COLUMNS_MAX).optional(),
  rows: z.int().min(1).max(ROWS_MAX).optional(),
  graphics: z
    .enum(['auto', 'blocks', 'kitty', 'sixel'])
    .default('auto')
    .describe('how pictures are drawn; auto asks the terminal, and takes blocks where it does not answer'),
});
type Options = z.infer<typeof options>;

/**
 * Draws a block of lines in the agent's terminal, or a picture if the terminal can, and updates it in place. Every cell
 * has its own colours, so that a QR is black on white in dark and light terminals. It does not touch text above the
 * block.
 */
export const terminal: DisplayDriver<Options> = {
  name: 'terminal',
  summary: 'the terminal that the agent runs in: pictures where it draws them, else half blocks',
  options,
  example: { graphics: 'auto' },
  open: async (given, io) => {
    const out = io.terminal;
    if (out === undefined || !out.isTTY) {
      throw new MissingPeerError(
        'the terminal display needs a terminal, but the output of this program is not one',
        'run it in a terminal without redirecting its output, or choose another display',
      );
    }
    const size = () => ({
      columns: given.columns ?? Math.min(out.columns || COLUMNS_DEFAULT, COLUMNS_MAX),
      rows: given.rows ?? Math.min(out.rows || ROWS_DEFAULT, ROWS_MAX),
    });
    const write = (text: string) => writeTo(out, text);
    const input = given.graphics === 'blocks' ? undefined : io.terminalInput;
    const answers = input && (await askTerminal(write, input, io.clock));
    const graphics = given.graphics === 'auto' ? (answers?.graphics ?? 'blocks') : given.graphics;
    if (graphics === 'blocks') return new TerminalDisplay(out, size, io);
    return new TerminalPicture({
      out,
      write,
      size,
      graphics,
      cell: answers?.cell,
      requestDraw: () => io.requestDraw(),
    });
  },
};

class TerminalDisplay implements Display {
  readonly #out: WriteStream;
  readonly #size: () => { columns: number; rows: number };
  readonly #requestDraw: () => void;
  /** The lines of the block on the screen. The cursor is at the start of the last one. */
  #lines: string[] = [];
  #cursorHidden = false;
  #qrShows = false;
  #open = true;

  constructor(out: WriteStream, size: () => { columns: number; rows: number }, io: DisplayIo) {
    this.#out = out;
    this.#size = size;
    this.#requestDraw = () => {
      this.#forget();
      io.requestDraw();
    };
    out.on('resize', this.#requestDraw);
  }

  get surface(): CharacterSurface {
    return { kind: 'characters', ...this.#size(), halfBlocks: true };
  }

  async draw(frame: Frame, scene: Scene): Promise<void> {
    if (!this.#open) throw closedFault();
    if (frame.kind !== 'characters') throw displayFault('a frame was laid out for pixels, not for a terminal', '');
    const lines = linesOf(frame, this.surface, colorsFor(this.#out.getColorDepth()));
    this.#qrShows = mayHoldQr(scene);
    await writeTo(this.#out, lines.length === 0 ? this.#wiped() : this.#update(lines));
  }

  async close(): Promise<void> {
    if (!this.#open) return;
    this.#open = false;
    this.#out.off('resize', this.#requestDraw);
    const wiped = this.#qrShows ? this.#wiped() : '';
    const below = this.#lines.length > 0 ? '\r\n' : '';
    const cursor = this.#cursorHidden ? '\x1b[?25h' : '';
    await writeTo(this.#out, `${wiped}${below}${cursor}`).catch(() => {});
  }

  /** Replaces the block by `lines`. Writes only changed lines. */
  #update(lines: readonly string[]): string {
    const height = Math.max(lines.length, this.#lines.length);
    const up = this.#lines.length > 1 ? `\x1b[${this.#lines.length - 1}A` : '';
    const changed = Array.from({ length: height }, (_, row) => (lines[row] ?? '') !== this.#lines[row]);
    if (!changed.includes(true)) return '';
    const text = changed.map((differs, row) => (differs ? `\x1b[K${lines[row] ?? ''}\x1b[0m` : '')).join('\r\n');
    this.#lines = Array.from({ length: height }, (_, row) => lines[row] ?? '');
    this.#cursorHidden = true;
    return `\x1b[?25l\r${up}${text}\r`;
  }

  /** Removes the block, to be written again. After a resize nobody knows how the terminal has wrapped the lines. */
  #forget(): void {
    this.#out.write(this.#wiped());
  }

  /** Removes the block. The cursor returns to its start. */
  #wiped(): string {
    const up = Math.min(this.#lines.length, this.surface.rows) - 1;
    const isThere = this.#lines.length > 0;
    this.#lines = [];
    return isThere ? `\r${up > 0 ? `\x1b[${up}A` : ''}\x1b[0m\x1b[J` : '';
  }
}

function writeTo(out: WriteStream, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    // The output that waits for a stopped terminal must stay bounded.
    if (out.writableNeedDrain) {
      reject(displayFault('the terminal takes no output', 'see that it is not stopped: Ctrl-Q'));
      return;
    }
    out.write(text, (error) => {
      if (error) reject(displayFault(`the terminal took no output: ${error.message}`, 'see that it is open', error));
      else resolve();
    });
  });
}

function colorsFor(depth: number): Colors {
  if (depth === 1) return 'none';
  return depth >= TRUE_COLOR_BITS ? 'true' : 'cube';
}

/** Returns the rows of a frame as text, cut to the current size of the terminal. */
function linesOf(frame: CharacterFrame, surface: CharacterSurface, colors: Colors): string[] {
  const columns = Math.min(frame.columns, surface.columns);
  return Array.from({ length: Math.min(frame.rows, surface.rows) }, (_, row) =>
    lineOf(frame.cells.slice(row * frame.columns, row * frame.columns + columns), colors),
  );
}

/**
 * Returns a row as text. Without colours only a QR has some, because no phone reads it in the colours of a dark
 * terminal.
 */
function lineOf(cells: readonly Cell[], colors: Colors): string {
  let before = '';
  let line = '';
  for (const { char, ink, paper } of cells) {
    const isPlain = colors === 'none' && char !== MODULES;
    const [front, back] = isPlain ? [] : [ink, paper].map((it) => colorOf(it, colors === 'true'));
    const wanted = isPlain ? PLAIN : `\x1b[38;${front};48;${back}m`;
    line += wanted === before || (isPlain && before === '') ? char : wanted + char;
    before = wanted;
  }
  return line;
}

function colorOf(color: number, trueColor: boolean): string {
  const parts = [color >> 16, (color >> 8) & 0xff, color & 0xff];
  if (trueColor) return `2;${parts.join(';')}`;
  // Colour cube of 256-colour terminals: 6 steps of red, green and blue from entry 16.
  const [red = 0, green = 0, blue = 0] = parts.map(cubeStep);
  return `5;${16 + 36 * red + 6 * green + blue}`;
}

/** Returns the nearest of the cube's steps 0, 95, 135, 175, 215, 255. */
function cubeStep(value: number): number {
  return value < 48 ? 0 : value < 115 ? 1 : Math.floor((value - 35) / 40);
}
