/**
 * A program of its own: draws glyph sheets and ends, so that the memory of the font parser and of the rasteriser is
 * given back. Reads a request as JSON from stdin; writes the sheet file under a temporary name and renames it.
 */
import { readFile, rename, writeFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import opentype from 'opentype.js';
import sharp from 'sharp';
import { CHARSET, FIGURES } from '../charset.ts';
import type { Face, FaceSpec, Glyph } from './faces.ts';
import { encodeSheets, sheetRequest } from './sheet-file.ts';

const SHEET_WIDTH = 2048;

interface Placed {
  char: string;
  glyph: Glyph;
  path: string;
  x: number;
  y: number;
}

/** Masks that are cut out of one picture of all glyphs of the face, laid out in rows. */
async function drawFace(font: OutlineFont, spec: FaceSpec): Promise<Face> {
  const scale = spec.sizePx / font.unitsPerEm;
  const baseline = Math.round(font.ascender * scale);
  const placed: Placed[] = [];
  let x = 0;
  let y = 0;
  let rowHeight = 0;
  let offset = 0;
  for (const char of spec.charset === 'text' ? CHARSET : FIGURES) {
    const outline = font.charToGlyph(char);
    if (outline.index === 0) throw new Error(`the font has no glyph for ${JSON.stringify(char)}`);
    const box = outline.getPath(0, baseline, spec.sizePx).getBoundingBox();
    const left = Math.floor(box.x1);
    const top = Math.floor(box.y1);
    const width = Math.ceil(box.x2) - left;
    const height = Math.ceil(box.y2) - top;
    if (x + width > SHEET_WIDTH) {
      x = 0;
      y += rowHeight;
      rowHeight = 0;
    }
    const path = outline.getPath(x - left, y + baseline - top, spec.sizePx).toPathData(2);
    const glyph = { advance: outline.advanceWidth * scale, left, top, width, height, offset };
    placed.push({ char, glyph, path, x, y });
    x += width;
    rowHeight = Math.max(rowHeight, height);
    offset += width * height;
  }
  const sheetHeight = y + rowHeight;
  const outlines = placed.map(({ path }) => `<path d="${path}"/>`).join('');
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="${SHEET_WIDTH}" height="${sheetHeight}">${outlines}</svg>`;
  const sheet = await sharp(Buffer.from(svg)).extractChannel('alpha').raw().toBuffer();
  const alpha = new Uint8Array(offset);
  for (const { glyph, ...at } of placed) {
    for (let row = 0; row < glyph.height; row += 1) {
      const from = (at.y + row) * SHEET_WIDTH + at.x;
      alpha.set(sheet.subarray(from, from + glyph.width), glyph.offset + row * glyph.width);
    }
  }
  const lineHeight = baseline + Math.ceil(-font.descender * scale);
  return { spec, lineHeight, glyphs: new Map(placed.map(({ char, glyph }) => [char, glyph])), alpha };
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
await writeFile(temporary, encodeSheets(faces));
await rename(temporary, request.target);
