import { crc32, inflateSync } from 'node:zlib';
import { PayboxError, reasonOf } from '../../lib/errors.ts';

/** The pixels of a screen, row by row: red, green, blue and alpha (always 255). */
export interface Picture {
  width: number;
  height: number;
  data: Uint8Array;
}

/** Returns the picture as a camera in another pose sees it. The area outside is grey. */
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
  /** The share of the pixels that differ, 0 to 1; 1 when the sizes differ. */
  share: number;
  /** The expected picture, faint, with differing pixels in red. */
  picture: Picture;
}

/** Two channels are equal within this tolerance, of 255. Scaling and colour profiles change pixels by this much. */
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

/** Returns the pixels of a PNG, JPEG, WebP or TIFF file. Throws PayboxError for anything else. */
export async function decodePicture(file: Uint8Array): Promise<Picture> {
  const plain = readPlainPng(file);
  if (plain !== undefined) return plain;
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

const SIGNATURE = '89504e470d0a1a0a';
/** The length, type and checksum of a chunk. */
const FRAME_BYTES = 12;
/** No screen has a larger picture. */
const PLAIN_PIXELS_MAX = 4_000_000;
/** The header of the plainest PNG: eight bits per channel, RGB, not interlaced. */
const PLAIN = [8, 2, 0, 0, 0].join();
const CHANNELS = 3;

/**
 * Returns the pixels of a PNG of the plainest kind, as boxes send their screens: RGB, no further chunks, each row
 * stored as it is or as the difference to the row above. Returns undefined for any other file. The general decoder
 * takes longer to load and to run.
 */
export function readPlainPng(file: Uint8Array): Picture | undefined {
  const bytes = Buffer.from(file.buffer, file.byteOffset, file.byteLength);
  const parts = chunksOf(bytes);
  const [header, content, end, ...more] = parts;
  if (header?.type !== 'IHDR' || content?.type !== 'IDAT' || end?.type !== 'IEND' || more.length > 0) return undefined;
  const { data } = header;
  if (data.length !== 13 || [...data.subarray(8)].join() !== PLAIN) return undefined;
  const [width, height] = [data.readUInt32BE(0), data.readUInt32BE(4)];
  if (width * height === 0 || width * height > PLAIN_PIXELS_MAX) return undefined;
  const rows = inflated(content.data, height * (1 + width * CHANNELS));
  return rows && pixelsOf(rows, width, height);
}

/** Returns the chunks of a PNG file; none for a damaged or other file. */
function chunksOf(bytes: Buffer): { type: string; data: Buffer }[] {
  if (bytes.toString('hex', 0, 8) !== SIGNATURE) return [];
  const found = [];
  for (let at = 8; at < bytes.length; ) {
    if (at + FRAME_BYTES > bytes.length) return [];
    const end = at + FRAME_BYTES + bytes.readUInt32BE(at);
    if (end > bytes.length || crc32(bytes.subarray(at + 4, end - 4)) !== bytes.readUInt32BE(end - 4)) return [];
    found.push({ type: bytes.toString('latin1', at + 4, at + 8), data: bytes.subarray(at + 8, end - 4) });
    at = end;
  }
  return found;
}

function inflated(content: Buffer, size: number): Buffer | undefined {
  try {
    const rows = inflateSync(content, { maxOutputLength: size });
    return rows.length === size ? rows : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Returns the pixels; undefined where a row has another filter than 0 (none) and 2 (the difference to the row above).
 */
function pixelsOf(rows: Buffer, width: number, height: number): Picture | undefined {
  const data = new Uint8Array(width * height * 4).fill(255);
  const length = width * CHANNELS;
  const same = Buffer.alloc(length);
  for (let y = 0; y < height; y += 1) {
    let from = y * (1 + length);
    const filter = rows[from++];
    if (filter !== 0 && filter !== 2) return undefined;
    let to = y * width * 4;
    const above = filter === 2 && y > 0 ? to - width * 4 : undefined;
    if (above !== undefined && rows.compare(same, 0, length, from, from + length) === 0) {
      data.copyWithin(to, above, to);
      continue;
    }
    for (let x = 0; x < width; x += 1, to += 4) {
      for (let channel = 0; channel < CHANNELS; channel += 1) {
        const base = above === undefined ? 0 : (data[above + x * 4 + channel] ?? 0);
        data[to + channel] = base + (rows[from++] ?? 0);
      }
    }
  }
  return { width, height, data };
}

/** Returns a PNG file of the pixels. */
export async function encodePicture({ width, height, data }: Picture): Promise<Uint8Array> {
  const { default: sharp } = await import('sharp');
  return sharp(data, { raw: { width, height, channels: 4 } })
    .png()
    .toBuffer();
}

/** Returns a grey copy with another width and stretched contrast. `soften` reduces its grain. */
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

/** The decoder's limit of work per attempt, in its own steps. Clear pictures need only the first. */
const EFFORT = 3;
const ATTEMPT_TIMEOUT_MS = 2_000;
/** The widths in pixels that a photograph is scaled to. The decoder fails on grain as well as on tiny pictures. */
const WIDTHS = [1_200, 800, 500] as const;
/** The camera poses to undo: the rotation in degrees, and by which share the far edge is narrower, above or below. */
const POSES = [
  { turnedDeg: 0, keystone: 0 },
  { turnedDeg: 0, keystone: 0.2 },
  { turnedDeg: 0, keystone: -0.2 },
  { turnedDeg: 20, keystone: 0 },
  { turnedDeg: -20, keystone: 0 },
  { turnedDeg: 45, keystone: 0 },
] as const;

/** Returns the text of the QR in an exact picture of a screen; undefined without one. */
export async function readQr(picture: Picture): Promise<string | undefined> {
  // The module is loaded on demand, because most commands do not decode.
  const { default: decode } = await import('qr/decode.js');
  return attempt(decode, picture);
}

/** Returns the text of the QR in a photograph of a screen. It tries several sizes and poses. */
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
