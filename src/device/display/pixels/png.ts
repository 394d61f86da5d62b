import { crc32, deflateSync } from 'node:zlib';
import { type CharacterFrame, type Frame, type PixelFrame, UPPER_HALF } from '../contract.ts';
import { BITMAP_HEIGHT, BITMAP_WIDTH, bitmapGlyph } from '../layout/fonts/bitmap.ts';
import { picturePanel } from '../layout/panel.ts';
import { blend, type Canvas, createCanvas, fill, frameOf } from './canvas.ts';

/** A cell is twice as high as wide, so that the halves of a `▀` are square. */
const CELL_WIDTH = BITMAP_WIDTH;
const CELL_HEIGHT = CELL_WIDTH * 2;
const GLYPH_TOP = Math.floor((CELL_HEIGHT - BITMAP_HEIGHT) / 2);

const SIGNATURE = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1');
/** The header: eight bits per channel, RGB, the only compression and filter methods, not interlaced. */
const FORMAT = [8, 2, 0, 0, 0];
/** Each row has filter 2, the difference to the row above, which is mostly 0 on a screen. */
const FILTER_UP = 2;
/** This is zlib's fastest level, because a screen is mostly flat and often requested. */
const COMPRESSION_LEVEL = 1;

/**
 * Encodes the frame as a PNG file. It draws a page of characters cell by cell, as in a terminal, and a frame of a smart
 * panel as such a page. Neither installed library replaces the encoder: on 800 × 480 pixels `pngjs` takes ten times as
 * long, and `sharp` takes 10 MB of memory to load and writes a file of four times the size.
 */
export function encodePng(frame: Frame): Uint8Array {
  const { width, height, data } =
    frame.kind === 'pixels' ? frame : picture(frame.kind === 'panel' ? picturePanel(frame) : frame);
  const header = Buffer.alloc(8);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  return Buffer.concat([
    SIGNATURE,
    chunk('IHDR', Buffer.concat([header, Buffer.from(FORMAT)])),
    chunk('IDAT', deflateSync(filteredRows(width, height, data), { level: COMPRESSION_LEVEL })),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

function filteredRows(width: number, height: number, data: Uint8Array): Uint8Array {
  const rows = new Uint8Array(height * (1 + width * 3));
  const stride = width * 4;
  const pixels = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  for (let y = 0; y < height; y += 1) {
    let to = y * (1 + width * 3);
    let from = y * stride;
    rows[to++] = FILTER_UP;
    // Most rows are like the one above, so their differences are 0 already.
    if (y > 0 && pixels.compare(pixels, from - stride, from, from, from + stride) === 0) continue;
    for (let x = 0; x < width; x += 1, from += 4) {
      for (let channel = 0; channel < 3; channel += 1) {
        const above = y === 0 ? 0 : (data[from + channel - stride] ?? 0);
        rows[to++] = (data[from + channel] ?? 0) - above;
      }
    }
  }
  return rows;
}

/** Returns a chunk: its length, type, content, and the checksum of type and content. */
function chunk(type: string, content: Uint8Array): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), content]);
  const framed = Buffer.alloc(body.length + 8);
  framed.writeUInt32BE(content.length, 0);
  framed.set(body, 4);
  framed.writeUInt32BE(crc32(body), body.length + 4);
  return framed;
}

function picture(frame: CharacterFrame): PixelFrame {
  const width = frame.columns * CELL_WIDTH;
  // A picture needs at least one row, even for a blank page.
  const height = Math.max(1, frame.rows) * CELL_HEIGHT;
  const canvas = createCanvas(width, height);
  for (const [index, { char, ink, paper }] of frame.cells.entries()) {
    const x = (index % frame.columns) * CELL_WIDTH;
    const y = Math.floor(index / frame.columns) * CELL_HEIGHT;
    fill(canvas, { x, y, width: CELL_WIDTH, height: CELL_HEIGHT }, paper);
    if (char === UPPER_HALF) fill(canvas, { x, y, width: CELL_WIDTH, height: CELL_HEIGHT / 2 }, ink);
    else if (char !== ' ') drawGlyph(canvas, x, y + GLYPH_TOP, char, ink);
  }
  return frameOf(canvas);
}

function drawGlyph(canvas: Canvas, x: number, y: number, char: string, ink: number): void {
  for (const [row, bits] of bitmapGlyph(char).entries()) {
    for (let column = 0; column < BITMAP_WIDTH; column += 1) {
      if (bits & (0x80 >> column)) blend(canvas, x + column, y + row, ink, 255);
    }
  }
}
