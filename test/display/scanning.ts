import jsqrModule from 'jsqr';
import decodeQr from 'qr/decode.js';
import { DISTORTIONS, type Distortion, photograph } from './distortions.ts';
import type { Picture } from './pictures.ts';

// The module is CommonJS: its function is the default of its default.
const jsqr = jsqrModule.default;

/** The decoders, which share no code with each other or with the encoder. */
const DECODERS: readonly ((picture: Picture) => string | undefined)[] = [
  (picture) => decodeQr(picture),
  ({ data, width, height }) => jsqr(new Uint8ClampedArray(data), width, height)?.data,
];

/** How many of the decoders read exactly this in a photograph. */
function readings(picture: Picture, payload: string): number {
  return DECODERS.filter((decode) => {
    try {
      return decode(picture) === payload;
    } catch {
      return false;
    }
  }).length;
}

/** The share, 0 to 1, of photographs of the screen that are read, each by each decoder. */
export function readShare(
  screen: Picture,
  payload: string,
  distortions: readonly Distortion[] = DISTORTIONS,
): { share: number; unread: string[] } {
  const counts = distortions.map((each, seed) => readings(photograph(screen, each, seed + 1), payload));
  const read = counts.reduce((sum, each) => sum + each, 0);
  return {
    share: read / (distortions.length * DECODERS.length),
    unread: distortions.filter((_, index) => counts[index] === 0).map(({ name }) => name),
  };
}
