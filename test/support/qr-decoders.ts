import { decode as decodePng } from 'fast-png';
import jsqrModule from 'jsqr';
import decodeQr from 'qr/decode.js';

// CommonJS interop: the function is the default of the default export.
const jsqr = jsqrModule.default;

/** Text that two decoders read in a PNG of 8 bits per channel. They share no code with each other or with the encoder. */
export function decodeQrTwice(png: Uint8Array): [string, string | undefined] {
  const { width, height, channels, data } = decodePng(png);
  const rgba = new Uint8ClampedArray(width * height * 4).fill(255);
  for (let pixel = 0; pixel < width * height; pixel += 1) {
    for (let channel = 0; channel < 3; channel += 1) {
      rgba[pixel * 4 + channel] = data[pixel * channels + (channels < 3 ? 0 : channel)] ?? 0;
    }
  }
  return [decodeQr({ width, height, data: new Uint8Array(rgba) }), jsqr(rgba, width, height)?.data];
}
