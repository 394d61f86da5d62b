import type { WriteStream } from 'node:tty';
import { mayHoldQr, type Scene } from '../../scene.ts';
import type { Display, Frame, PixelFrame, PixelSurface } from '../contract.ts';
import { closedFault } from '../fault.ts';
import { changedBox } from '../pixels/changes.ts';
import { expectPixels } from './pixel-options.ts';
import { KITTY_DELETE, kittyPicture, sixelPicture } from './terminal-graphics.ts';

/** The size of a cell if the terminal does not report it. */
const CELL_DEFAULT = { width: 8, height: 16 };
const WIDTH_MAX_PX = 960;
const HEIGHT_MAX_PX = 576;
/** The largest height of a picture as a share of its width, so that texts fit beside the code. */
const HEIGHT_SHARE = 0.6;
const SIDE_MIN_PX = 64;

export interface PictureOptions {
  out: WriteStream;
  write(text: string): Promise<void>;
  size(): { columns: number; rows: number };
  graphics: 'kitty' | 'sixel';
  cell: { width: number; height: number } | undefined;
  requestDraw(): void;
}

/** Draws a picture in the terminal, in its own block of lines. The cursor stays at the start of the block. */
export class TerminalPicture implements Display {
  readonly #options: PictureOptions;
  readonly #cell: { width: number; height: number };
  readonly #requestDraw: () => void;
  /** The picture on the screen. */
  #shown: PixelFrame | undefined;
  /** The number of lines of the block; 0 before it exists. */
  #lines = 0;
  #cursorHidden = false;
  #qrShows = false;
  #open = true;

  constructor(options: PictureOptions) {
    this.#options = options;
    this.#cell = options.cell ?? CELL_DEFAULT;
    this.#requestDraw = () => {
      this.#shown = undefined;
      options.requestDraw();
    };
    options.out.on('resize', this.#requestDraw);
  }

  get surface(): PixelSurface {
    const { columns, rows } = this.#options.size();
    const { width: across, height: down } = this.#cell;
    const width = Math.max(SIDE_MIN_PX, Math.min(WIDTH_MAX_PX, columns * across));
    // One line stays free, because some terminals scroll when a picture reaches the last one.
    const height = Math.max(SIDE_MIN_PX, Math.min(HEIGHT_MAX_PX, (rows - 1) * down, Math.floor(width * HEIGHT_SHARE)));
    return { kind: 'pixels', width, height };
  }

  async draw(given: Frame, scene: Scene): Promise<void> {
    if (!this.#open) throw closedFault();
    const frame = expectPixels(given, this.surface);
    this.#qrShows = mayHoldQr(scene);
    if (scene.kind === 'blank') {
      await this.#options.write(this.#wiped());
      return;
    }
    if (changedBox(this.#shown, frame) === undefined) return;
    const picture = this.#options.graphics === 'kitty' ? kittyPicture(frame) : sixelPicture(frame);
    this.#cursorHidden = true;
    await this.#options.write(`\x1b[?25l${this.#room(frame)}${picture}`);
    this.#shown = frame;
  }

  async close(): Promise<void> {
    if (!this.#open) return;
    this.#open = false;
    this.#options.out.off('resize', this.#requestDraw);
    const wiped = this.#qrShows ? this.#wiped() : '';
    const below = this.#lines > 0 ? `\x1b[${this.#lines}B\r` : '';
    const cursor = this.#cursorHidden ? '\x1b[?25h' : '';
    await this.#options.write(`${wiped}${below}${cursor}`).catch(() => {});
  }

  /** Removes the block. The cursor returns to its start. */
  #wiped(): string {
    const clear = this.#options.graphics === 'kitty' ? KITTY_DELETE : '';
    const isThere = this.#lines > 0;
    this.#lines = 0;
    this.#shown = undefined;
    return isThere ? `${clear}\r\x1b[J` : '';
  }

  /** Makes lines for a picture of this height. It removes an earlier picture. Text above stays. */
  #room({ height }: PixelFrame): string {
    if (this.#shown !== undefined) return '';
    this.#lines = Math.ceil(height / this.#cell.height);
    return `\r\x1b[J${'\r\n'.repeat(this.#lines)}\x1b[${this.#lines}A`;
  }
}
