import { encode } from 'fast-png';
import { blend, type Canvas, fill } from './canvas.ts';
import { type CharacterFrame, type Frame, type PixelFrame, UPPER_HALF } from './contract.ts';
import { BITMAP_HEIGHT, BITMAP_WIDTH, bitmapGlyph } from './fonts/bitmap.ts';

/** A cell twice as high as wide, so that the two halves of a `▀` are square. */
const CELL_WIDTH = BITMAP_WIDTH;
const CELL_HEIGHT = CELL_WIDTH * 2;
const GLYPH_TOP = Math.floor((CELL_HEIGHT - BITMAP_HEIGHT) / 2);

/** zlib's fastest level: a screen is mostly flat, and the picture is often asked for. */
const COMPRESSION_LEVEL = 1;

/** The frame as a PNG file. A page of characters is drawn cell by cell, as a terminal would show it. */
export function encodePng(frame: Frame): Uint8Array {
  const { width, height, data } = frame.kind === 'pixels' ? frame : picture(frame);
  const opaque = new Uint8Array(width * height * 3);
  for (let from = 0, to = 0; to < opaque.length; from += 4, to += 3) {
    opaque[to] = data[from] ?? 0;
    opaque[to + 1] = data[from + 1] ?? 0;
    opaque[to + 2] = data[from + 2] ?? 0;
  }
  return encode({ width, height, data: opaque, channels: 3, depth: 8 }, { zlib: { level: COMPRESSION_LEVEL } });
}

function picture(frame: CharacterFrame): PixelFrame {
  const width = frame.columns * CELL_WIDTH;
  const height = frame.rows * CELL_HEIGHT;
  const canvas: Canvas = { width, height, words: new Uint32Array(width * height) };
  for (const [index, { char, ink, paper }] of frame.cells.entries()) {
    const x = (index % frame.columns) * CELL_WIDTH;
    const y = Math.floor(index / frame.columns) * CELL_HEIGHT;
    fill(canvas, { x, y, width: CELL_WIDTH, height: CELL_HEIGHT }, paper);
    if (char === UPPER_HALF) fill(canvas, { x, y, width: CELL_WIDTH, height: CELL_HEIGHT / 2 }, ink);
    else if (char !== ' ') drawGlyph(canvas, x, y + GLYPH_TOP, char, ink);
  }
  return { kind: 'pixels', width, height, data: new Uint8Array(canvas.words.buffer) };
}

function drawGlyph(canvas: Canvas, x: number, y: number, char: string, ink: number): void {
  for (const [row, bits] of bitmapGlyph(char).entries()) {
    for (let column = 0; column < BITMAP_WIDTH; column += 1) {
      if (bits & (0x80 >> column)) blend(canvas, x + column, y + row, ink, 255);
    }
  }
}
