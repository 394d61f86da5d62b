import encodeQR from 'qr';
import { bitmapFace } from '../../device/display/layout/fonts/bitmap.ts';
import { type Face, measure } from '../../device/display/layout/fonts/faces.ts';
import { type Canvas, createCanvas, fill, frameOf } from '../../device/display/pixels/canvas.ts';
import type { Picture } from '../engine/pictures.ts';

const WHITE = 0xffffff;
const BLACK = 0;
/** The quiet zone of a QR (ISO/IEC 18004). */
const QUIET_MODULES = 4;
const MARGIN_PX = 16;

export type Ecc = 'low' | 'medium' | 'quartile' | 'high';

/**
 * Returns the QR that a panel draws for this text, with the largest whole pixels per module that fit into `sidePixels`;
 * undefined when it does not fit. The encoder is not paybox's own.
 */
export function codeOf(text: string, sidePixels: number): Picture | undefined {
  const rows = modulesOf(text, 'low');
  const modulePixels = Math.floor(sidePixels / ((rows?.length ?? 0) + 2 * QUIET_MODULES));
  return rows === undefined || modulePixels < 1 ? undefined : pictureOfDots(rows, modulePixels, QUIET_MODULES);
}

/** Returns the QR of this text with the given module size and margin; undefined when the text is too long. */
export function codeOfModules(
  text: string,
  { ecc, modulePixels, quietModules }: { ecc: Ecc; modulePixels: number; quietModules: number },
): Picture | undefined {
  const rows = modulesOf(text, ecc);
  return rows === undefined ? undefined : pictureOfDots(rows, modulePixels, quietModules);
}

/** Returns the modules per side of this text's QR without margin; undefined when the text is too long. */
export function codeModules(text: string, ecc: Ecc): number | undefined {
  return modulesOf(text, ecc)?.length;
}

/** Returns the modules of a QR without margin. The whole text is one byte segment, as simple devices encode it. */
function modulesOf(text: string, ecc: Ecc): boolean[][] | undefined {
  try {
    const rows = encodeQR(text, 'raw', { ecc, border: 1, encoding: 'byte' });
    return rows.slice(1, -1).map((row) => row.slice(1, -1));
  } catch {
    // The encoder throws only when the text is too long.
    return undefined;
  }
}

/** Draws rows of dots, or of the modules of a QR, on white paper. `margin` is the number of blank dots on each side. */
export function pictureOfDots(rows: readonly (readonly boolean[])[], dotPixels: number, margin: number): Picture {
  const columns = Math.max(...rows.map((row) => row.length));
  const canvas = createCanvas((columns + 2 * margin) * dotPixels, (rows.length + 2 * margin) * dotPixels);
  fill(canvas, canvas.clip, WHITE);
  for (const [y, row] of rows.entries()) {
    for (const [x, isDark] of row.entries()) {
      if (!isDark) continue;
      const [left, top] = [(x + margin) * dotPixels, (y + margin) * dotPixels];
      fill(canvas, { x: left, y: top, width: dotPixels, height: dotPixels }, BLACK);
    }
  }
  return frameOf(canvas);
}

const TEXT_FACE = bitmapFace({ bitmap: '8x13', scale: 2, charset: 'text' });
const CELL_FACE = bitmapFace({ bitmap: '6x13', scale: 2, charset: 'text' });
const CELL = { width: 12, height: 26 };

/**
 * Returns the picture of a panel with its own colours: lines of text, and the QR beside them, or above them on an
 * upright panel.
 */
export function panelPicture(
  { width, height }: { width: number; height: number },
  texts: readonly string[],
  code: Picture | undefined,
): Picture {
  const canvas = createCanvas(width, height);
  fill(canvas, canvas.clip, WHITE);
  const isUpright = height > width;
  let y = MARGIN_PX;
  if (code !== undefined) {
    const left = isUpright ? Math.floor((width - code.width) / 2) : width - code.width - MARGIN_PX;
    lay(canvas, code, { x: left, y });
    if (isUpright) y += code.height + MARGIN_PX;
  }
  const room = isUpright || code === undefined ? width : width - code.width - MARGIN_PX;
  for (const text of texts) {
    canvas.clip = { x: 0, y: 0, width: room, height };
    write(canvas, text, { x: MARGIN_PX, y, face: TEXT_FACE, ink: BLACK, times: 1 });
    y += TEXT_FACE.lineHeight + MARGIN_PX;
  }
  return frameOf(canvas);
}

const LIT = { ink: 0xe8f4ff, paper: 0x1040a0 };

/** Returns the picture of a backlit display of character cells. */
export function cellsPicture(lines: readonly string[], columns: number): Picture {
  const canvas = createCanvas(columns * CELL.width + 2 * MARGIN_PX, lines.length * CELL.height + 2 * MARGIN_PX);
  fill(canvas, canvas.clip, LIT.paper);
  for (const [row, line] of lines.entries()) {
    const y = MARGIN_PX + row * CELL.height;
    for (const [column, char] of [...line].entries()) {
      writeInCell(canvas, char, { x: MARGIN_PX + column * CELL.width, y, ink: LIT.ink, times: 1 });
    }
  }
  return frameOf(canvas);
}

export interface PaperLine {
  text: string;
  double: boolean;
  centred: boolean;
}

/** Returns the picture of a paper slip of this width in dots: its lines with the QR below. */
export function paperPicture(dots: number, lines: readonly PaperLine[], code: Picture | undefined): Picture {
  const timesOf = ({ double }: PaperLine) => (double ? 2 : 1);
  const textHeight = lines.reduce((sum, line) => sum + CELL.height * timesOf(line), 0);
  const canvas = createCanvas(dots, textHeight + (code?.height ?? 0) + 2 * MARGIN_PX);
  fill(canvas, canvas.clip, WHITE);
  let y = MARGIN_PX;
  for (const line of lines) {
    const times = timesOf(line);
    const width = CELL.width * times;
    const left = line.centred ? Math.floor((dots - line.text.length * width) / 2) : 0;
    for (const [column, char] of [...line.text].entries()) {
      writeInCell(canvas, char, { x: left + column * width, y, ink: BLACK, times });
    }
    y += CELL.height * times;
  }
  if (code !== undefined) lay(canvas, code, { x: Math.floor((dots - code.width) / 2), y });
  return frameOf(canvas);
}

function lay(canvas: Canvas, { width, height, data }: Picture, at: { x: number; y: number }): void {
  const words = new Uint32Array(data.buffer, data.byteOffset, width * height);
  for (let row = 0; row < height; row += 1) {
    canvas.words.set(words.subarray(row * width, (row + 1) * width), (at.y + row) * canvas.width + at.x);
  }
}

interface Pen {
  x: number;
  y: number;
  face: Face;
  ink: number;
  /** The width and height of each of its pixels in the result. */
  times: number;
}

function write(canvas: Canvas, text: string, { x, y, face, ink, times }: Pen): void {
  let pen = x;
  for (const char of text.normalize('NFC')) {
    const glyph = face.glyphs.get(char) ?? face.glyphs.get('?');
    if (glyph === undefined) continue;
    for (let at = 0; at < glyph.width * glyph.height; at += 1) {
      if ((face.alpha[glyph.offset + at] ?? 0) === 0) continue;
      const [column, row] = [at % glyph.width, Math.floor(at / glyph.width)];
      fill(canvas, { x: pen + column * times, y: y + row * times, width: times, height: times }, ink);
    }
    pen += glyph.advance * times;
  }
}

function writeInCell(canvas: Canvas, char: string, { x, ...pen }: Omit<Pen, 'face'>): void {
  const left = Math.floor((CELL.width - measure(char, CELL_FACE)) / 2);
  write(canvas, char, { ...pen, x: x + Math.max(0, left) * pen.times, face: CELL_FACE });
}
