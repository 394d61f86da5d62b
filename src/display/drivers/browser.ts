import { z } from 'zod';
import type { DisplayDriver, PixelSurface } from '../contract.ts';
import { closedFault } from './fault.ts';
import { expectPixels, sidePx } from './pixel-options.ts';

const options = z.strictObject({ width: sidePx.default(800), height: sidePx.default(480) });

/** A screen that exists in the box's own page: the agent serves its pictures, and nothing else is needed. */
export const browser: DisplayDriver<z.infer<typeof options>> = {
  name: 'browser',
  summary: 'a screen in the web page of the box',
  options,
  example: { width: 800, height: 480 },
  open: async ({ width, height }) => {
    const surface: PixelSurface = { kind: 'pixels', width, height };
    let open = true;
    return {
      surface,
      draw: async (frame) => {
        if (!open) throw closedFault();
        expectPixels(frame, surface);
      },
      close: async () => {
        open = false;
      },
    };
  },
};
