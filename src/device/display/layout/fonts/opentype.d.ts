/** Declares the used parts of opentype.js, which has no declarations. */
declare module 'opentype.js' {
  interface BoundingBox {
    x1: number;
    y1: number;
    x2: number;
    y2: number;
  }
  interface Path {
    getBoundingBox(): BoundingBox;
    toPathData(decimals: number): string;
  }
  interface OutlineGlyph {
    /** The index; 0 is the glyph for missing characters. */
    index: number;
    advanceWidth: number;
    /** Returns the outline at a baseline position, for a size in pixels; y grows downwards. */
    getPath(x: number, y: number, sizePx: number): Path;
  }
  interface Font {
    unitsPerEm: number;
    charToGlyph(char: string): OutlineGlyph;
  }
  const opentype: { parse(file: ArrayBuffer): Font };
  export default opentype;
}
