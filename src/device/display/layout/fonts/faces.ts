/** A weight and size of the typeface, with its characters. */
export interface FaceSpec {
  weight: 400 | 600 | 700;
  sizePx: number;
  /** The characters. `figures` are only those of an amount, so that very large sizes need little memory. */
  charset: 'text' | 'figures';
}

/** A pixel font, for panels too small for outlines. Each pixel is a square of `scale`. */
export interface BitmapSpec {
  /** The font. `5x7` has only figures and the letters of a mark, `10x20` only figures. */
  bitmap: '5x7' | '6x13' | '8x13' | '10x20';
  scale: 1 | 2;
  charset: FaceSpec['charset'] | 'mark';
}

/**
 * The place of a glyph's mask in its sheet, and on the screen: in pixels from the pen position and the top of the line.
 */
export interface Glyph {
  advance: number;
  left: number;
  top: number;
  width: number;
  height: number;
  /** The index of its first byte in the sheet. */
  offset: number;
}

/** A face that is ready to be drawn. */
export interface Face {
  spec: FaceSpec | BitmapSpec;
  lineHeight: number;
  glyphs: ReadonlyMap<string, Glyph>;
  /** The coverage of every glyph, one byte per pixel, from 0 to 255. */
  alpha: Uint8Array;
}

export function faceName(spec: FaceSpec | BitmapSpec): string {
  if ('bitmap' in spec) return `${spec.charset}-${spec.bitmap}${spec.scale === 1 ? '' : `-times-${spec.scale}`}`;
  return `${spec.charset}-${spec.weight}-${spec.sizePx}`;
}

/** Measures `text` in pixels, rounded up. */
export function measure(text: string, face: Face): number {
  let width = 0;
  for (const char of text) width += face.glyphs.get(char)?.advance ?? 0;
  return Math.ceil(width);
}
