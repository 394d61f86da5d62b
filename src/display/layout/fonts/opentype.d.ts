/** The few parts of opentype.js, which comes without declarations, that turn a glyph into an outline. */
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
    /** 0 is the glyph of a character that the font lacks. */
    index: number;
    advanceWidth: number;
    /** The outline at a baseline position, at a size in pixels; y grows downwards. */
    getPath(x: number, y: number, sizePx: number): Path;
  }
  interface Font {
    unitsPerEm: number;
    charToGlyph(char: string): OutlineGlyph;
  }
  const opentype: { parse(file: ArrayBuffer): Font };
  export default opentype;
}
