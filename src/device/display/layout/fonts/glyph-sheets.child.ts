/**
 * This program draws glyph sheets and ends, so that it frees the memory of font parser and rasteriser. It reads a
 * request as JSON from stdin, writes the sheet file under a temporary name and renames it.
 */
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import opentype from 'opentype.js';
import sharp from 'sharp';
import { CHARSET, FIGURES } from '../../charset.ts';
import type { Face, FaceSpec, Glyph } from './faces.ts';
import { encodeSheets, sheetRequest } from './sheet-file.ts';

const SHEET_WIDTH = 2048;
/** The margin above and below an amount, as a share of its size. */
const FIGURE_MARGIN = 0.12;

interface Placed {
  char: string;
  glyph: Glyph;
  path: string;
  x: number;
  y: number;
}

/** Cuts masks from a picture with all glyphs of the face in rows. */
async function drawFace(font: OutlineFont, spec: FaceSpec): Promise<Face> {
  const { baseline, lineHeight } = lineOf(font, spec);
  const placed: Placed[] = [];
  let x = 0;
  let y = 0;
  let rowHeight = 0;
  let offset = 0;
  for (const char of charactersOf(spec)) {
    const outline = font.charToGlyph(char);
    const { left, top, width, height } = boundsOf(font, spec, char, baseline);
    if (x + width > SHEET_WIDTH) {
      x = 0;
      y += rowHeight;
      rowHeight = 0;
    }
    const path = outline.getPath(x - left, y + baseline - top, spec.sizePx).toPathData(2);
    const advance = (outline.advanceWidth * spec.sizePx) / font.unitsPerEm;
    placed.push({ char, glyph: { advance, left, top, width, height, offset }, path, x, y });
    x += width;
    rowHeight = Math.max(rowHeight, height);
    offset += width * height;
  }
  const alpha = await cutOut(placed, y + rowHeight, offset);
  return { spec, lineHeight, glyphs: new Map(placed.map(({ char, glyph }) => [char, glyph])), alpha };
}

/**
 * Returns the baseline and height of a line that is high enough for all letters: accents over capitals exceed the
 * ascender of the font.
 */
function lineOf(font: OutlineFont, spec: FaceSpec): { baseline: number; lineHeight: number } {
  const bounds = Array.from(charactersOf(spec), (char) => boundsOf(font, spec, char, 0));
  const margin = spec.charset === 'figures' ? Math.round(spec.sizePx * FIGURE_MARGIN) : 0;
  const baseline = margin - Math.min(...bounds.map(({ top }) => top));
  const below = Math.max(...bounds.map(({ top, height }) => top + height));
  return { baseline, lineHeight: baseline + below + margin };
}

function boundsOf(font: OutlineFont, spec: FaceSpec, char: string, baseline: number) {
  const outline = font.charToGlyph(char);
  if (outline.index === 0) throw new Error(`the font has no glyph for ${JSON.stringify(char)}`);
  const box = outline.getPath(0, baseline, spec.sizePx).getBoundingBox();
  const left = Math.floor(box.x1);
  const top = Math.floor(box.y1);
  return { left, top, width: Math.ceil(box.x2) - left, height: Math.ceil(box.y2) - top };
}

function charactersOf({ charset }: FaceSpec): string {
  return charset === 'text' ? CHARSET : FIGURES;
}

async function cutOut(placed: readonly Placed[], sheetHeight: number, alphaBytes: number): Promise<Uint8Array> {
  const outlines = placed.map(({ path }) => `<path d="${path}"/>`).join('');
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="${SHEET_WIDTH}" height="${sheetHeight}">${outlines}</svg>`;
  const sheet = await sharp(Buffer.from(svg)).extractChannel('alpha').raw().toBuffer();
  const alpha = new Uint8Array(alphaBytes);
  for (const { glyph, x, y } of placed) {
    for (let row = 0; row < glyph.height; row += 1) {
      const from = (y + row) * SHEET_WIDTH + x;
      alpha.set(sheet.subarray(from, from + glyph.width), glyph.offset + row * glyph.width);
    }
  }
  return alpha;
}

type OutlineFont = ReturnType<typeof opentype.parse>;

const request = sheetRequest.parse(JSON.parse(await text(process.stdin)));
const fonts = new Map<string, OutlineFont>();
for (const [weight, path] of Object.entries(request.fontFiles)) {
  const bytes = await readFile(path);
  fonts.set(weight, opentype.parse(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength)));
}
const faces: Face[] = [];
for (const spec of request.specs) {
  const font = fonts.get(String(spec.weight));
  if (font === undefined) throw new Error(`no font file for weight ${spec.weight}`);
  faces.push(await drawFace(font, spec));
}
const temporary = `${request.target}.${process.pid}.tmp`;
try {
  await writeFile(temporary, encodeSheets(faces), { flag: 'wx' });
  await rename(temporary, request.target);
} catch (error) {
  // Half a file would take up the last room of a full disk.
  await rm(temporary, { force: true });
  throw error;
}
