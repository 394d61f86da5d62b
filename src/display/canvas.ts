import type { PixelFrame } from './contract.ts';
import type { Box } from './layout/items.ts';

/** Pixels being painted: one 32-bit word each, little-endian red, green, blue, 255. */
export interface Canvas {
  width: number;
  height: number;
  words: Uint32Array;
}

export function createCanvas(width: number, height: number): Canvas {
  return { width, height, words: new Uint32Array(width * height) };
}

/** The canvas as a frame, which shares its memory. */
export function frameOf({ width, height, words }: Canvas): PixelFrame {
  return { kind: 'pixels', width, height, data: new Uint8Array(words.buffer, words.byteOffset, words.byteLength) };
}

/** The pixels of a frame as words of a canvas; shares its memory. The frame's bytes begin at a multiple of 4. */
export function wordsOf({ data }: PixelFrame): Uint32Array {
  return new Uint32Array(data.buffer, data.byteOffset, data.byteLength / 4);
}

/** A colour 0xRRGGBB as a word of the canvas. */
export function wordOf(color: number): number {
  return (0xff000000 | ((color & 0xff) << 16) | (color & 0xff00) | (color >> 16)) >>> 0;
}

/** Lays `color` over one pixel; `coverage` is 0 to 255. */
export function blend(canvas: Canvas, x: number, y: number, color: number, coverage: number): void {
  if (coverage <= 0 || x < 0 || y < 0 || x >= canvas.width || y >= canvas.height) return;
  const at = y * canvas.width + x;
  if (coverage >= 255) {
    canvas.words[at] = wordOf(color);
    return;
  }
  const under = canvas.words[at] ?? 0;
  const mix = (over: number, below: number) => Math.round((over * coverage + below * (255 - coverage)) / 255);
  const red = mix(color >> 16, under & 0xff);
  const green = mix((color >> 8) & 0xff, (under >> 8) & 0xff);
  const blue = mix(color & 0xff, (under >> 16) & 0xff);
  canvas.words[at] = (0xff000000 | (blue << 16) | (green << 8) | red) >>> 0;
}

/** Fills a rectangle; what leaves the canvas is cut. */
export function fill(canvas: Canvas, box: Box, color: number): void {
  const word = wordOf(color);
  const left = Math.max(0, box.x);
  const right = Math.min(canvas.width, box.x + box.width);
  const bottom = Math.min(canvas.height, box.y + box.height);
  for (let y = Math.max(0, box.y); y < bottom; y += 1) {
    if (right > left) canvas.words.fill(word, y * canvas.width + left, y * canvas.width + right);
  }
}
