import { PayboxError, reasonOf } from '../lib/errors.ts';
import type { Picture } from './pictures.ts';

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
    throw new PayboxError('NO_PICTURE', `what should be a picture is none: ${reasonOf(error)}`, {
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

/** The same picture in grey and of another width, with its lights and darks spread, and its grain softened if asked. */
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
