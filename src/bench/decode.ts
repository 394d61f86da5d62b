import type { Picture } from './pictures.ts';
import { turned } from './pictures.ts';

/** Work that the decoder may put into one attempt, in its own steps; clear pictures need the first only. */
const EFFORT = 3;
const ATTEMPT_TIMEOUT_MS = 2_000;
/** Widths to which a photograph is brought, in pixels: a decoder finds a code neither in grain nor in a stamp. */
const WIDTHS = [1_200, 800, 500] as const;
/** How a camera may hang: turned in degrees, and how much narrower the far edge is, from above or below, as a share. */
const POSES = [
  { turnedDeg: 0, keystone: 0 },
  { turnedDeg: 0, keystone: 0.2 },
  { turnedDeg: 0, keystone: -0.2 },
  { turnedDeg: 20, keystone: 0 },
  { turnedDeg: -20, keystone: 0 },
  { turnedDeg: 45, keystone: 0 },
] as const;

/** What a QR in an exact picture of a screen says; undefined without one. */
export async function readQr(picture: Picture): Promise<string | undefined> {
  // Loaded by whoever decodes only.
  const { default: decode } = await import('qr/decode.js');
  return attempt(decode, picture);
}

/** What a QR in a photograph of a screen says: it is looked for in several sizes, and as seen from several sides. */
export async function readQrInPhotograph(picture: Picture): Promise<string | undefined> {
  const { default: decode } = await import('qr/decode.js');
  const { resized } = await import('./picture-file.ts');
  const exact = attempt(decode, picture);
  if (exact !== undefined) return exact;
  for (const width of WIDTHS) {
    for (const softened of [false, true]) {
      const sized = await resized(picture, width, softened);
      for (const pose of POSES) {
        const isStraight = pose.turnedDeg === 0 && pose.keystone === 0;
        const found = attempt(decode, isStraight ? sized : turned(sized, pose));
        if (found !== undefined) return found;
      }
    }
  }
  return undefined;
}

type Decode = (picture: Picture, options: { effort: number; timeLimit: number }) => string;

function attempt(decode: Decode, picture: Picture): string | undefined {
  try {
    return decode(picture, { effort: EFFORT, timeLimit: ATTEMPT_TIMEOUT_MS });
  } catch {
    // The decoder throws for a picture without a code, and names no reason that would help.
    return undefined;
  }
}
