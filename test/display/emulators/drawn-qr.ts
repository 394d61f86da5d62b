import jsqrModule from 'jsqr';
import encodeQR from 'qr';

// The module is CommonJS: its function is the default of its default.
const jsqr = jsqrModule.default;
const MODULE_PIXELS = 4;

/**
 * What a phone reads from the code that a panel would draw of this text; undefined when it reads none. The code is made
 * and read without the encoder that paybox uses.
 */
export function readDrawnQr(text: string): string | undefined {
  const modules = encodeQR(text, 'raw', { ecc: 'low', scale: MODULE_PIXELS, border: 4 });
  const side = modules.length;
  const pixels = new Uint8ClampedArray(side * side * 4).fill(255);
  modules.forEach((row, y) => {
    row.forEach((dark, x) => {
      if (dark) pixels.fill(0, (y * side + x) * 4, (y * side + x) * 4 + 3);
    });
  });
  return jsqr(pixels, side, side)?.data;
}
