import { z } from 'zod';
import type { DisplayDriver } from '../contract.ts';
import { closedFault } from '../fault.ts';
import { rotated } from '../pixels/rotate.ts';
import { expectPixels, rotation, sidePx } from './pixel-options.ts';

const options = z.strictObject({ width: sidePx.default(800), height: sidePx.default(480), rotation });

/** Shows a screen only in the box's own web page, where the agent serves its pictures. */
export const browser: DisplayDriver<z.infer<typeof options>> = {
  name: 'browser',
  summary: 'a screen in the web page of the box',
  options,
  example: { width: 800, height: 480, rotation: 0 },
  open: async ({ width, height, rotation }) => {
    const { surface } = rotated({ width, height }, rotation);
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
