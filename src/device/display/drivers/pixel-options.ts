import { z } from 'zod';
import type { Frame, PixelFrame, PixelSurface } from '../contract.ts';
import { displayFault } from '../fault.ts';
import type { Rotation } from '../pixels/rotate.ts';

/** A smaller side shows nothing useful. No payment box has a larger one, and a picture needs 4 bytes per pixel. */
const SIDE_MIN_PX = 16;
const SIDE_MAX_PX = 4096;

/** Limits the side of a screen in pixels, if the size can be chosen. */
export const sidePx = z.int().min(SIDE_MIN_PX).max(SIDE_MAX_PX);

/** Degrees by which `rotated` turns the picture clockwise. */
export const rotation = z
  .union([z.literal(0), z.literal(90), z.literal(180), z.literal(270)])
  .default(0)
  .describe(
    'degrees that the picture is turned clockwise on the panel: 0, 90, 180 or 270',
  ) satisfies z.ZodType<Rotation>;

/** Returns the frame if it fits this surface. Throws a PayboxError `DISPLAY_FAULT` otherwise. */
export function expectPixels(frame: Frame, { width, height }: PixelSurface): PixelFrame {
  if (frame.kind === 'pixels' && frame.width === width && frame.height === height) return frame;
  throw displayFault(`a frame was laid out for another screen than this one of ${width} x ${height} pixels`, '');
}
