import { z } from 'zod';
import type { DisplayDriver } from '../contract.ts';
import { changedRuns, HD44780_INSTEAD, openCharacters } from './character-screen.ts';
import { serialOptions } from './serial-screen.ts';

/** After this character (`|`) the next one is a setting. */
const SETTING = 0x7c;
const CLEAR = [SETTING, 0x2d];
/**
 * The bytes complete a command that an earlier program left half sent. Otherwise they are characters, which the
 * clearing removes.
 */
const SYNC = [0, 0, 0];
/** Without this the screen shows every setting for two seconds. */
const MESSAGES_OFF = [SETTING, 0x2f];
const CONTRAST = [SETTING, 0x18];
/** The bytes for red, green and blue follow it. */
const BACKLIGHT = [SETTING, 0x2b];
/** The next byte is a command of the HD44780; with bit 7 it is an address in its memory. */
const COMMAND = 0xfe;
const MOVE = 0x80;
/** A move needs 2 bytes. Writing up to as many equal characters again is cheaper. */
const GAP_MAX = 2;

const level = z.int().min(0).max(255);
const options = z.strictObject({
  ...serialOptions(9600),
  size: z.enum(['16x2', '20x4']).default('20x4'),
  contrast: level.optional().describe('0 (dark) to 255 (light); left as the display has it when not given'),
  backlight: z
    .tuple([level, level, level])
    .optional()
    .describe('red, green and blue, each 0 to 255; needs firmware 1.1; left as the display has it when not given'),
});

/** Drives a character display with the OpenLCD firmware (SparkFun SerLCD). It cannot show a QR. */
export const openlcd: DisplayDriver<z.infer<typeof options>> = {
  name: 'openlcd',
  summary: 'a SparkFun SerLCD of 2 x 16 or 4 x 20 characters; no QR',
  options,
  example: { path: '/dev/ttyUSB0', baudRate: 9600, size: '20x4', contrast: 40, backlight: [255, 255, 255] },
  open: ({ size, contrast, backlight, ...settings }, io, signal) => {
    const [columns, rows] = size === '16x2' ? [16, 2] : [20, 4];
    // With 4 lines, the third continues the first in that memory, and the fourth the second.
    const starts = [0, 0x40, columns, 0x40 + columns];
    return openCharacters(
      settings,
      {
        columns,
        rows,
        // A `|` would turn the next character into a setting.
        instead: { ...HD44780_INSTEAD, '|': '/' },
        setup: Uint8Array.from([
          ...SYNC,
          ...MESSAGES_OFF,
          ...(contrast === undefined ? [] : [...CONTRAST, contrast]),
          ...(backlight === undefined ? [] : [...BACKLIGHT, ...backlight]),
          ...CLEAR,
        ]),
        // This is empty, because the display stores its settings without power.
        again: Uint8Array.of(),
        update: (before, after) =>
          Uint8Array.from(
            changedRuns(before, after, GAP_MAX).flatMap(({ row, column, text }) => [
              COMMAND,
              MOVE + (starts[row] ?? 0) + column,
              ...Buffer.from(text, 'latin1'),
            ]),
          ),
      },
      io,
      signal,
    );
  },
};
