import { PayboxError, reasonOf } from '../lib/errors.ts';

/** Pixels of a screen, row by row: red, green, blue and alpha (always 255). */
export interface Picture {
  width: number;
  height: number;
  data: Uint8Array;
}

/** The picture as seen by a camera in another pose; the area outside is grey. */
export function turned(picture: Picture, { turnedDeg, keystone }: { turnedDeg: number; keystone: number }): Picture {
  const { width, height } = picture;
  const data = new Uint8Array(width * height * 4).fill(128);
  const angle = (turnedDeg * Math.PI) / 180;
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      const across = x - width / 2;
      const down = y - height / 2;
      const depth = 1 + (keystone * down) / (height / 2);
      const u = Math.round((across * cos + down * sin) * depth + width / 2);
      const v = Math.round((down * cos - across * sin) * depth + height / 2);
      const to = (y * width + x) * 4;
      if (u >= 0 && v >= 0 && u < width && v < height) {
        const from = (v * width + u) * 4;
        for (let channel = 0; channel < 3; channel += 1) data[to + channel] = picture.data[from + channel] ?? 0;
      }
      data[to + 3] = 255;
    }
  }
  return { width, height, data };
}

export interface PictureDifference {
  /** Share of the pixels that differ, 0 to 1; 1 when the sizes differ. */
  share: number;
  /** The expected picture, faint, with differing pixels in red. */
  picture: Picture;
}

/** Tolerance of 255 per channel: scaling and colour profiles change pixels by this much. */
const CHANNEL_TOLERANCE = 24;
const FAINT = 4;

/** Compares a screen with the expected picture. */
export function comparePictures(actual: Picture, expected: Picture): PictureDifference {
  const { width, height } = expected;
  const isOneSize = actual.width === width && actual.height === height;
  const data = new Uint8Array(width * height * 4).fill(255);
  let different = 0;
  for (let at = 0; at < data.length; at += 4) {
    let differs = !isOneSize;
    for (let channel = 0; channel < 3; channel += 1) {
      const here = expected.data[at + channel] ?? 0;
      if (Math.abs((actual.data[at + channel] ?? 0) - here) > CHANNEL_TOLERANCE) differs = true;
      data[at + channel] = 255 - Math.floor((255 - here) / FAINT);
    }
    if (differs) {
      different += 1;
      data.set([255, 0, 0], at);
    }
  }
  return { share: different / (width * height), picture: { width, height, data } };
}

const PIXELS_MAX = 60_000_000;
const SOFT_SIGMA = 1.2;

/** The pixels of a PNG, JPEG, WebP or TIFF file. Throws PayboxError for anything else. */
export async function decodePicture(file: Uint8Array): Promise<Picture> {
  const { default: sharp } = await import('sharp');
  try {
    const { data, info } = await sharp(file, { limitInputPixels: PIXELS_MAX })
      .rotate()
      .toColourspace('srgb')
      .ensureAlpha()
      .raw()
      .toBuffer({ resolveWithObject: true });
    return { width: info.width, height: info.height, data };
  } catch (error) {
    throw new PayboxError('NO_PICTURE', `the file is not a picture: ${reasonOf(error)}`, {
      severity: 'retryable',
    });
  }
}

/** A PNG file of the pixels. */
export async function encodePicture({ width, height, data }: Picture): Promise<Uint8Array> {
  const { default: sharp } = await import('sharp');
  return sharp(data, { raw: { width, height, channels: 4 } })
    .png()
    .toBuffer();
}

/** A grey copy with another width and stretched contrast; `soften` reduces its grain. */
export async function resized({ width, height, data }: Picture, toWidth: number, soften: boolean): Promise<Picture> {
  const { default: sharp } = await import('sharp');
  const grey = sharp(data, { raw: { width, height, channels: 4 } })
    .resize({ width: toWidth })
    .greyscale()
    .normalise();
  const { data: bytes, info } = await (soften ? grey.blur(SOFT_SIGMA) : grey)
    .toColourspace('srgb')
    .ensureAlpha()
    .raw()
    .toBuffer({ resolveWithObject: true });
  return { width: info.width, height: info.height, data: bytes };
}

/** Work limit of the decoder per attempt, in its own steps; clear pictures need only the first. */
const EFFORT = 3;
const ATTEMPT_TIMEOUT_MS = 2_000;
/** Widths in pixels that a photograph is scaled to: the decoder fails on grain as well as on tiny pictures. */
const WIDTHS = [1_200, 800, 500] as const;
/** Camera poses to undo: rotation in degrees, and by which share the far edge is narrower, above or below. */
const POSES = [
  { turnedDeg: 0, keystone: 0 },
  { turnedDeg: 0, keystone: 0.2 },
  { turnedDeg: 0, keystone: -0.2 },
  { turnedDeg: 20, keystone: 0 },
  { turnedDeg: -20, keystone: 0 },
  { turnedDeg: 45, keystone: 0 },
] as const;

/** The text of the QR in an exact picture of a screen; undefined without one. */
export async function readQr(picture: Picture): Promise<string | undefined> {
  // Loaded on demand: most commands do not decode.
  const { default: decode } = await import('qr/decode.js');
  return attempt(decode, picture);
}

/** The text of the QR in a photograph of a screen. Tries several sizes and poses. */
export async function readQrInPhotograph(picture: Picture): Promise<string | undefined> {
  const { default: decode } = await import('qr/decode.js');
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
    // The decoder throws for a picture without a QR; its reason does not help.
    return undefined;
  }
}
