import type { PixelFrame } from '../contract.ts';
import type { Box } from '../layout/items.ts';

/** A picture to paint on: one 32-bit word per pixel, little-endian red, green, blue, 255. */
export interface Canvas {
  width: number;
  height: number;
  words: Uint32Array;
  /** The area to paint in. Nothing is painted outside of it. */
  clip: Box;
}

export function createCanvas(width: number, height: number): Canvas {
  return { width, height, words: new Uint32Array(width * height), clip: { x: 0, y: 0, width, height } };
}

/** Returns the canvas as a frame, in shared memory. */
export function frameOf({ width, height, words }: Canvas): PixelFrame {
  return { kind: 'pixels', width, height, data: new Uint8Array(words.buffer, words.byteOffset, words.byteLength) };
}

/** Returns the pixels of a frame as canvas words, in shared memory. The frame's bytes must begin at a multiple of 4. */
export function wordsOf({ data }: PixelFrame): Uint32Array {
  return new Uint32Array(data.buffer, data.byteOffset, data.byteLength / 4);
}

/** Returns a colour 0xRRGGBB as a canvas word. */
function wordOf(color: number): number {
  return (0xff000000 | ((color & 0xff) << 16) | (color & 0xff00) | (color >> 16)) >>> 0;
}

/** Blends `color` into a pixel. `coverage` is 0 to 255. */
export function blend(canvas: Canvas, x: number, y: number, color: number, coverage: number): void {
  const { clip } = canvas;
  if (coverage <= 0 || x < clip.x || y < clip.y || x >= clip.x + clip.width || y >= clip.y + clip.height) return;
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

/** Fills the part of a rectangle that is inside the clip. */
export function fill(canvas: Canvas, box: Box, color: number): void {
  const word = wordOf(color);
  const { x, y, width, height } = intersection(box, canvas.clip);
  for (let row = y; row < y + height; row += 1) {
    const start = row * canvas.width + x;
    canvas.words.fill(word, start, start + width);
  }
}

/** Intersects two rectangles. Width or height is 0 if the result is empty. */
export function intersection(a: Box, b: Box): Box {
  const x = Math.max(a.x, b.x);
  const y = Math.max(a.y, b.y);
  const width = Math.max(0, Math.min(a.x + a.width, b.x + b.width) - x);
  const height = Math.max(0, Math.min(a.y + a.height, b.y + b.height) - y);
  return width > 0 && height > 0 ? { x, y, width, height } : { x, y, width: 0, height: 0 };
}
