import { z } from 'zod';
import type { DisplayDriver } from '../contract.ts';
import { openCharacters } from './character-screen.ts';
import { serialOptions } from './serial-screen.ts';

const COLUMNS = 20;
const ROWS = 2;
/** Selectors of the upper and the lower line, in ESC Q A and ESC Q B … CR. */
const LINES = [0x41, 0x42];
const ESC = 0x1b;
const CLEAR = 0x0c;
const CR = 0x0d;

const options = z.strictObject({
  ...serialOptions(9600),
  brightness: z.int().min(1).max(4).default(4).describe('1 (dim) to 4 (bright)'),
});

/** Drives a customer display of two lines that speaks CD5220, as most poles at a till do. It cannot show a QR. */
export const cd5220: DisplayDriver<z.infer<typeof options>> = {
  name: 'cd5220',
  summary: 'a customer pole of 2 x 20 characters that speaks CD5220; no QR',
  options,
  example: { path: '/dev/ttyUSB0', baudRate: 9600, brightness: 4 },
  open: ({ brightness, ...settings }, io, signal) =>
    openCharacters(
      settings,
      {
        columns: COLUMNS,
        rows: ROWS,
        instead: {},
        // CR ends half a line that an earlier program may have sent. After ESC Q the display understands only CLR.
        setup: Uint8Array.of(CR, CLEAR, ESC, 0x40, ESC, 0x2a, brightness),
        // This is empty, because after ESC Q the display understands only a line or CLR. So a pole that has lost its
        // power has its default brightness.
        again: Uint8Array.of(),
        update: (before, after) =>
          Buffer.concat(
            LINES.map((line, row) => {
              const text = after[row] ?? '';
              if (text === before[row]) return Buffer.alloc(0);
              return Buffer.from([ESC, 0x51, line, ...Buffer.from(text, 'latin1'), CR]);
            }),
          ),
      },
      io,
      signal,
    ),
};
