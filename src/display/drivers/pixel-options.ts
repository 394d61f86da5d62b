import { z } from 'zod';
import type { Frame, PixelFrame, PixelSurface } from '../contract.ts';
import { displayFault } from './fault.ts';

/** Smaller shows nothing; larger than this no payment box is, and a picture takes 4 bytes a pixel. */
const SIDE_MIN_PX = 16;
const SIDE_MAX_PX = 4096;

/** Pixels on one side of a screen whose size is a matter of choice. */
export const sidePx = z.int().min(SIDE_MIN_PX).max(SIDE_MAX_PX);

/** The frame, if it is one for this surface; throws a PayboxError `DISPLAY_FAULT` otherwise. */
export function expectPixels(frame: Frame, { width, height }: PixelSurface): PixelFrame {
  if (frame.kind === 'pixels' && frame.width === width && frame.height === height) return frame;
  throw displayFault(`a frame was laid out for another screen than this one of ${width} x ${height} pixels`, '');
}
