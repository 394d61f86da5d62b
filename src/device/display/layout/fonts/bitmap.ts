import { CHARSET, FIGURES, MARK_LETTERS } from '../../charset.ts';
import { BITMAP_ROWS } from './bitmap-rows.ts';
import type { BitmapSpec, Face, Glyph } from './faces.ts';

/** The cell of the font for pictures of character pages. */
export const BITMAP_WIDTH = 8;
export const BITMAP_HEIGHT = 13;

interface Font {
  height: number;
  characters: string;
  /** The width of a blank, narrower than the cell. */
  spacePx: number;
  /** The pixels between two letters. */
  gapPx: number;
}

const FONTS: Readonly<Record<BitmapSpec['bitmap'], Font>> = {
  '5x7': { height: 7, characters: FIGURES + MARK_LETTERS, spacePx: 0, gapPx: 1 },
  '6x13': { height: 13, characters: CHARSET, spacePx: 3, gapPx: 1 },
  '8x13': { height: 13, characters: CHARSET, spacePx: 4, gapPx: 1 },
  '10x20': { height: 20, characters: FIGURES, spacePx: 4, gapPx: 2 },
};

const CHARACTERS: Readonly<Record<BitmapSpec['charset'], string>> = {
  text: CHARSET,
  figures: FIGURES,
  mark: MARK_LETTERS,
};

/** All figures get the width of this one: no other has ink outside its columns. */
const WIDEST_FIGURE = '4';

const CELL_ROWS = Buffer.from(BITMAP_ROWS['8x13'], 'base64');
const CELL_INDEX: ReadonlyMap<string, number> = new Map(Array.from(CHARSET, (char, index) => [char, index]));

/** Returns the rows of a glyph of 8x13, one byte each. A missing character gives `?`. */
export function bitmapGlyph(char: string): Uint8Array {
  const index = CELL_INDEX.get(char) ?? CELL_INDEX.get('?') ?? 0;
  return CELL_ROWS.subarray(index * BITMAP_HEIGHT, (index + 1) * BITMAP_HEIGHT);
}

/**
 * Returns a fixed font as a face. Each pixel is a square of `scale`. Letters have their own width and a gap, because
 * small panels are narrow. All figures have one width, so that a number does not move while it counts.
 */
export function bitmapFace(spec: BitmapSpec): Face {
  const { height, characters, spacePx, gapPx } = FONTS[spec.bitmap];
  const { scale } = spec;
  const bytes = Buffer.from(BITMAP_ROWS[spec.bitmap], 'base64');
  const rowBytes = bytes.length / (characters.length * height);
  const rowsOf = (char: string) => {
    const first = characters.indexOf(char) * height;
    return Array.from({ length: height }, (_, row) => bytes.readUIntBE((first + row) * rowBytes, rowBytes));
  };
  const glyphs = new Map<string, Glyph>();
  const masks: Uint8Array[] = [];
  let offset = 0;
  for (const char of CHARACTERS[spec.charset]) {
    const { left, width } = inkOf(rowsOf(/\d/.test(char) ? WIDEST_FIGURE : char), rowBytes * 8);
    const mask = maskOf(rowsOf(char), rowBytes * 8 - left, width, scale);
    const advance = (width === 0 ? spacePx : width + gapPx) * scale;
    glyphs.set(char, { advance, left: 0, top: 0, width: width * scale, height: height * scale, offset });
    masks.push(mask);
    offset += mask.length;
  }
  return { spec, lineHeight: height * scale, glyphs, alpha: Buffer.concat(masks) };
}

/** Returns the columns that have ink, in rows of `bits` bits. */
function inkOf(rows: readonly number[], bits: number): { left: number; width: number } {
  const all = rows.reduce((sum, row) => sum | row, 0);
  if (all === 0) return { left: 0, width: 0 };
  const left = Math.clz32(all) - (32 - bits);
  const right = 31 - Math.clz32(all & -all);
  return { left, width: bits - right - left };
}

function maskOf(rows: readonly number[], shift: number, width: number, scale: number): Uint8Array {
  const mask = new Uint8Array(rows.length * width * scale * scale);
  let at = 0;
  for (const row of rows) {
    for (let copy = 0; copy < scale; copy += 1) {
      for (let x = 0; x < width * scale; x += 1) {
        mask[at++] = (row >> (shift - 1 - Math.floor(x / scale))) & 1 ? 255 : 0;
      }
    }
  }
  return mask;
}
