import { z } from 'zod';
import type { DisplayDriver } from '../contract.ts';
import { changedRuns, HD44780_INSTEAD, openCharacters } from './character-screen.ts';
import { serialOptions } from './serial-screen.ts';

const COMMAND = 0xfe;
const CLEAR = [COMMAND, 0x58];
/**
 * The bytes complete a command that an earlier program left half sent. Otherwise they are characters, which the
 * clearing removes.
 */
const SYNC = [0, 0];
/** Stops storing settings: an earlier program may have enabled it, and each write wears out the memory. */
const REMEMBER_OFF = [COMMAND, 0x93, 0];
/** By default a character in the last cell scrolls the page. */
const AUTO_SCROLL_OFF = [COMMAND, 0x52];
/** The minutes until it goes dark follow it; 0 is never. */
const BACKLIGHT_ON = [COMMAND, 0x42, 0];
const BRIGHTNESS = [COMMAND, 0x99];
const CONTRAST = [COMMAND, 0x50];
/** Column and row follow it, counted from 1. */
const MOVE = [COMMAND, 0x47];
/** A move needs 4 bytes. Writing up to as many equal characters again is cheaper. */
const GAP_MAX = 4;

const level = z.int().min(0).max(255);
const options = z.strictObject({
  ...serialOptions(19200),
  columns: z.int().min(8).max(40).default(20),
  rows: z.int().min(1).max(4).default(4),
  contrast: level.optional().describe('0 (light) to 255 (dark); left as the display has it when not given'),
  brightness: level.optional().describe('0 (dim) to 255 (bright); left as the display has it when not given'),
});

/** Drives a character display of Matrix Orbital (LCD and LK series), or one with its commands. It cannot show a QR. */
export const matrixOrbital: DisplayDriver<z.infer<typeof options>> = {
  name: 'matrix-orbital',
  summary: 'a Matrix Orbital character display, as 4 x 20; no QR',
  options,
  example: { path: '/dev/ttyUSB0', baudRate: 19200, columns: 20, rows: 4, contrast: 128, brightness: 255 },
  open: ({ columns, rows, contrast, brightness, ...port }, io, signal) => {
    const settings = Uint8Array.from([
      ...REMEMBER_OFF,
      ...AUTO_SCROLL_OFF,
      ...(contrast === undefined ? [] : [...CONTRAST, contrast]),
      ...BACKLIGHT_ON,
      ...(brightness === undefined ? [] : [...BRIGHTNESS, brightness]),
    ]);
    return openCharacters(
      port,
      {
        columns,
        rows,
        instead: HD44780_INSTEAD,
        setup: Uint8Array.from([...SYNC, ...settings, ...CLEAR]),
        again: settings,
        update: (before, after) =>
          Uint8Array.from(
            changedRuns(before, after, GAP_MAX).flatMap(({ row, column, text }) => [
              ...MOVE,
              column + 1,
              row + 1,
              ...Buffer.from(text, 'latin1'),
            ]),
          ),
      },
      io,
      signal,
    );
  },
};
