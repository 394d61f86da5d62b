/** One weight and size of the typeface, with the characters that are drawn in it. */
export interface FaceSpec {
  weight: 400 | 600 | 700;
  sizePx: number;
  /** `figures`: only what an amount needs, so that very large sizes stay small. */
  charset: 'text' | 'figures';
}

/** A font of fixed pixels for panels too small for outlines, each pixel drawn as a square of `scale`. */
export interface BitmapSpec {
  /** `5x7` and `10x20` are there for figures only. */
  bitmap: '5x7' | '6x13' | '8x13' | '10x20';
  scale: 1 | 2;
  charset: FaceSpec['charset'];
}

/** Where a glyph's mask lies in its sheet and where it goes, in pixels from the pen position and the top of the line. */
export interface Glyph {
  advance: number;
  left: number;
  top: number;
  width: number;
  height: number;
  /** Index of its first byte in the sheet. */
  offset: number;
}

/** A face that is ready to be drawn. */
export interface Face {
  spec: FaceSpec | BitmapSpec;
  lineHeight: number;
  glyphs: ReadonlyMap<string, Glyph>;
  /** Coverage of every glyph, one byte a pixel: 0 is nothing, 255 full. */
  alpha: Uint8Array;
}

export function faceName(spec: FaceSpec | BitmapSpec): string {
  if ('bitmap' in spec) return `${spec.charset}-${spec.bitmap}${spec.scale === 1 ? '' : `-times-${spec.scale}`}`;
  return `${spec.charset}-${spec.weight}-${spec.sizePx}`;
}

/** The width of `text` in pixels, rounded up. */
export function measure(text: string, face: Face): number {
  let width = 0;
  for (const char of text) width += face.glyphs.get(char)?.advance ?? 0;
  return Math.ceil(width);
}
