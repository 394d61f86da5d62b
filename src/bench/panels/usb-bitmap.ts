import type { Picture } from '../engine/pictures.ts';
import { Emulator } from './emulator.ts';

const WIDTH = 320;
const HEIGHT = 480;
const HEADER_BYTES = 6;
const BITMAP = 197;
/** The number of bytes after the header of each command except the bitmap. */
const PARAMETERS: ReadonlyMap<number, number> = new Map([
  [108, 0],
  [109, 0],
  [110, 0],
  [121, 10],
]);

/**
 * Emulates a Turing 3.5" panel. It receives commands and pixel rectangles in portions of any size. A violation is a
 * pixel that a panel would draw in another place, twice, or on a dark screen.
 */
export class UsbBitmapEmulator extends Emulator {
  override readonly isPoweredByPort = true;
  lit = false;
  /** The brightness: 0 is the brightest. */
  level: number | undefined;
  orientation: number | undefined;
  readonly #pixels = new Uint16Array(WIDTH * HEIGHT).fill(0x1234);
  #unread = Buffer.alloc(0);

  restart(): void {
    this.#unread = Buffer.alloc(0);
    this.#pixels.fill(0);
    this.lit = false;
    this.level = undefined;
    this.orientation = undefined;
  }

  receive(bytes: Uint8Array): void {
    this.#unread = Buffer.concat([this.#unread, bytes]);
    for (let taken = this.#takeOne(); taken > 0; taken = this.#takeOne()) {
      this.#unread = this.#unread.subarray(taken);
    }
  }

  /** Removes one complete command from the buffer. Returns its length in bytes, 0 while it is incomplete. */
  #takeOne(): number {
    if (this.#unread.length < HEADER_BYTES) return 0;
    // The header has four numbers of 10 bits, most significant first.
    const numbers = BigInt(`0x${this.#unread.subarray(0, 5).toString('hex')}`);
    const at = (shift: bigint) => Number((numbers >> shift) & 0x3ffn);
    const area = [at(30n), at(20n), at(10n), at(0n)];
    const command = this.#unread[5] ?? 0;
    if (command === BITMAP) return this.#bitmap(area);
    const parameters = PARAMETERS.get(command);
    if (parameters === undefined) {
      this.violation(`unknown command ${command}`);
      return HEADER_BYTES;
    }
    const length = HEADER_BYTES + parameters;
    if (this.#unread.length < length) return 0;
    this.#execute(command, area, this.#unread.subarray(HEADER_BYTES, length));
    return length;
  }

  #execute(command: number, [first = 0, ...rest]: readonly number[], parameters: Buffer): void {
    if (rest.some((number) => number !== 0)) this.violation(`command ${command} with an area`);
    if (command === 108) this.lit = false;
    if (command === 109) this.lit = true;
    if (command === 110) {
      if (first > 255) this.violation(`a brightness of ${first}`);
      this.level = first;
    }
    if (command === 121) {
      const [orientation = 0] = parameters;
      const size = [parameters.readUInt16BE(1), parameters.readUInt16BE(3)];
      if (orientation !== 100 || size[0] !== WIDTH || size[1] !== HEIGHT || first !== 0) {
        this.violation(`orientation ${orientation} of ${size.join(' x ')}`);
      }
      this.orientation = orientation;
    }
  }

  #bitmap(area: readonly number[]): number {
    const [left = 0, top = 0, right = 0, bottom = 0] = area;
    const pixels = (right - left + 1) * (bottom - top + 1);
    if (left > right || top > bottom || right >= WIDTH || bottom >= HEIGHT) {
      this.violation(`an area of ${area.join(', ')}`);
      return HEADER_BYTES;
    }
    const length = HEADER_BYTES + 2 * pixels;
    if (this.#unread.length < length) return 0;
    if (!this.lit || this.orientation === undefined || this.level === undefined) {
      this.violation('a picture before the panel was ready');
    }
    let place = HEADER_BYTES;
    for (let y = top; y <= bottom; y += 1) {
      for (let x = left; x <= right; x += 1, place += 2) this.#pixels[y * WIDTH + x] = this.#unread.readUInt16LE(place);
    }
    return length;
  }

  /** Returns the panel's image in portrait. */
  picture(): Picture {
    const data = new Uint8Array(WIDTH * HEIGHT * 4);
    for (const [index, pixel] of this.#pixels.entries()) {
      const spread = (value: number, max: number) => Math.round((value * 255) / max);
      const color = [spread(pixel >> 11, 31), spread((pixel >> 5) & 63, 63), spread(pixel & 31, 31), 255];
      data.set(this.lit ? color : [0, 0, 0, 255], index * 4);
    }
    return { width: WIDTH, height: HEIGHT, data };
  }

  /** Returns the whole screen. The panel shows pixels only and draws no QR itself. */
  code(): Picture {
    return this.picture();
  }

  shownTexts(): string[] {
    return [];
  }
}
