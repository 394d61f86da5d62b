import { z } from 'zod';
import type { Frame, PixelFrame, PixelSurface } from '../contract.ts';
import { displayFault } from '../fault.ts';
import type { Rotation } from '../pixels/rotate.ts';

/** Smaller shows nothing; larger than this no payment box is, and a picture takes 4 bytes a pixel. */
const SIDE_MIN_PX = 16;
const SIDE_MAX_PX = 4096;

/** Pixels on one side of a screen whose size is a matter of choice. */
export const sidePx = z.int().min(SIDE_MIN_PX).max(SIDE_MAX_PX);

/** Degrees that the picture is turned clockwise; `rotated` of `rotate.ts` does it. */
export const rotation = z
  .union([z.literal(0), z.literal(90), z.literal(180), z.literal(270)])
  .default(0)
  .describe(
    'degrees that the picture is turned clockwise on the panel: 0, 90, 180 or 270',
  ) satisfies z.ZodType<Rotation>;

/** The frame, if it is one for this surface; throws a PayboxError `DISPLAY_FAULT` otherwise. */
export function expectPixels(frame: Frame, { width, height }: PixelSurface): PixelFrame {
  if (frame.kind === 'pixels' && frame.width === width && frame.height === height) return frame;
  throw displayFault(`a frame was laid out for another screen than this one of ${width} x ${height} pixels`, '');
}
