import type { z } from 'zod';
import type { Display, DisplayDriver, DisplayIo } from './contract.ts';
import { browser } from './drivers/browser.ts';
import { cd5220 } from './drivers/cd5220.ts';
import { dqr } from './drivers/dqr.ts';
import { dwin } from './drivers/dwin.ts';
import { escpos } from './drivers/escpos.ts';
import { framebuffer } from './drivers/framebuffer.ts';
import { ledMatrix } from './drivers/led-matrix.ts';
import { matrixOrbital } from './drivers/matrix-orbital.ts';
import { nextion } from './drivers/nextion.ts';
import { openlcd } from './drivers/openlcd.ts';
import { png } from './drivers/png.ts';
import { terminal } from './drivers/terminal.ts';
import { usbBitmap } from './drivers/usb-bitmap.ts';

/** A driver for any options. Decoding and opening are one step, so that no caller needs their type. */
export interface RegisteredDriver {
  readonly name: string;
  readonly summary: string;
  readonly needsLinux?: boolean | undefined;
  /** Valid `options`, as in a configuration. */
  readonly example: unknown;
  readonly options: z.ZodType;
  /** Decodes these options. Throws a ZodError whose paths begin at the options. */
  configure(options: unknown): { open(io: DisplayIo, signal: AbortSignal): Promise<Display> };
}

function register<Options>(driver: DisplayDriver<Options>): RegisteredDriver {
  const { name, summary, needsLinux, example, options } = driver;
  return {
    name,
    summary,
    needsLinux,
    example,
    options,
    configure: (given) => {
      const decoded = options.parse(given);
      return { open: (io, signal) => driver.open(decoded, io, signal) };
    },
  };
}

/** Every kind of screen, by its name in a configuration. */
export const DISPLAY_DRIVERS: ReadonlyMap<string, RegisteredDriver> = new Map(
  [
    register(browser),
    register(terminal),
    register(png),
    register(nextion),
    register(dwin),
    register(dqr),
    register(framebuffer),
    register(ledMatrix),
    register(cd5220),
    register(matrixOrbital),
    register(openlcd),
    register(usbBitmap),
    register(escpos),
  ].map((driver) => [driver.name, driver]),
);
