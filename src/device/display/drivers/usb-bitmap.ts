import { z } from 'zod';
import { mayHoldQr } from '../../scene.ts';
import type { DisplayDriver, PixelFrame } from '../contract.ts';
import { packRgb565 } from '../io/pixel-bytes.ts';
import { wordsOf } from '../pixels/canvas.ts';
import { rotated } from '../pixels/rotate.ts';
import { expectPixels, rotation } from './pixel-options.ts';
import { SerialScreen, serialOptions } from './serial-screen.ts';

const PANEL = { width: 320, height: 480 };
const BYTES_PER_PIXEL = 2;
const HEADER_BYTES = 6;
const COMMANDS = { screenOff: 108, screenOn: 109, brightness: 110, orientation: 121, bitmap: 197 } as const;
/** Orientations are numbered from 100; the first one is portrait. */
const PORTRAIT = 100;
/** The panel needs this length, although the parameters are shorter. */
const ORIENTATION_BYTES = 16;
const DARKEST = 255;
/** This many unchanged rows separate two rectangles. With fewer it is cheaper to send the rows along. */
const GAP_ROWS_MIN = 4;

const options = z.strictObject({
  ...serialOptions(115_200),
  rotation,
  brightness: z.int().min(0).max(100).default(60).describe('the backlight in percent'),
});

/**
 * Drives USB-serial panels of the Turing 3.5" class. They draw bitmaps in rectangles and answer nothing, so nobody can
 * read the picture back. But noise changes single pixels, not the payload of a QR. The driver rotates the picture, and
 * the panel stays in portrait, because panels differ in their own orientations. It is not refreshed: a loss of power
 * also ends the port, because the cable powers the panel, and a whole picture is 300 kB.
 */
export const usbBitmap: DisplayDriver<z.infer<typeof options>> = {
  name: 'usb-bitmap',
  summary: 'a 3.5" USB-serial panel of the Turing class, 320 x 480 pixels',
  options,
  example: { path: '/dev/ttyACM0', baudRate: 115_200, rotation: 0, brightness: 60 },
  open: async ({ path, baudRate, rotation, brightness }, io, signal) => {
    const { surface, turn } = rotated(PANEL, rotation);
    const off = headerOf(COMMANDS.screenOff);
    const on = headerOf(COMMANDS.screenOn);
    const hello = Buffer.concat([off, orientation()]);
    const screen = await SerialScreen.open({ path, baudRate }, hello, io, signal);
    let shown: Uint8Array | undefined;
    let lit = false;
    let qrMayShow = false;
    return {
      surface,
      draw: async (frame, scene) => {
        screen.expectOpen();
        const wanted = bytesOf(turn(expectPixels(frame, surface)));
        if (scene.kind === 'blank') {
          await screen.send(lit ? off : new Uint8Array());
          lit = false;
          qrMayShow = false;
          return;
        }
        qrMayShow ||= mayHoldQr(scene);
        const parts = changedAreas(shown, wanted).map((area) => bitmapOf(area, wanted));
        // The panel is dark until the picture is complete, because it may still show a QR of an earlier program.
        await screen.send(Buffer.concat(lit ? parts : [brightnessOf(0), on, ...parts, brightnessOf(brightness)]));
        shown = wanted;
        lit = true;
        qrMayShow = mayHoldQr(scene);
      },
      close: () => screen.close(qrMayShow ? off : new Uint8Array()),
    };
  },
};

/** The corners of a rectangle, inclusive. */
interface Area {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

/** Returns the first six bytes of every command: four numbers of 10 bits, then the command byte. */
function headerOf(command: number, { left, top, right, bottom }: Area = NOWHERE): Uint8Array {
  return Uint8Array.of(
    left >> 2,
    ((left & 3) << 6) | (top >> 4),
    ((top & 15) << 4) | (right >> 6),
    ((right & 63) << 2) | (bottom >> 8),
    bottom & 255,
    command,
  );
}

const NOWHERE: Area = { left: 0, top: 0, right: 0, bottom: 0 };

function orientation(): Uint8Array {
  const { width, height } = PANEL;
  const bytes = new Uint8Array(ORIENTATION_BYTES);
  bytes.set(headerOf(COMMANDS.orientation));
  bytes.set([PORTRAIT, width >> 8, width & 255, height >> 8, height & 255], HEADER_BYTES);
  return bytes;
}

/** Returns the command for a brightness. Level 0 is the brightest, in the place of the first number. */
function brightnessOf(percent: number): Uint8Array {
  const left = Math.round(DARKEST * (1 - percent / 100));
  return headerOf(COMMANDS.brightness, { ...NOWHERE, left });
}

/** Returns the pixels of a frame in the panel's format. */
function bytesOf(frame: PixelFrame): Uint8Array {
  const bytes = new Uint8Array(PANEL.width * PANEL.height * BYTES_PER_PIXEL);
  packRgb565(wordsOf(frame), new DataView(bytes.buffer), 0);
  return bytes;
}

/** Returns rectangles around all changed pixels, or the whole panel if its picture is not known. */
function changedAreas(before: Uint8Array | undefined, after: Uint8Array): Area[] {
  if (before === undefined) return [{ left: 0, top: 0, right: PANEL.width - 1, bottom: PANEL.height - 1 }];
  const areas: Area[] = [];
  for (let row = 0; row < PANEL.height; row += 1) {
    const changed = changedColumns(before, after, row);
    if (changed === undefined) continue;
    const last = areas.at(-1);
    if (last !== undefined && row - last.bottom <= GAP_ROWS_MIN) {
      last.bottom = row;
      last.left = Math.min(last.left, changed.left);
      last.right = Math.max(last.right, changed.right);
    } else {
      areas.push({ ...changed, top: row, bottom: row });
    }
  }
  return areas;
}

function changedColumns(before: Uint8Array, after: Uint8Array, row: number): Pick<Area, 'left' | 'right'> | undefined {
  const bytes = PANEL.width * BYTES_PER_PIXEL;
  const start = row * bytes;
  if (Buffer.compare(before.subarray(start, start + bytes), after.subarray(start, start + bytes)) === 0)
    return undefined;
  let first = 0;
  while (before[start + first] === after[start + first]) first += 1;
  let last = bytes - 1;
  while (before[start + last] === after[start + last]) last -= 1;
  return { left: Math.floor(first / BYTES_PER_PIXEL), right: Math.floor(last / BYTES_PER_PIXEL) };
}

function bitmapOf(area: Area, picture: Uint8Array): Uint8Array {
  const rows = Array.from({ length: area.bottom - area.top + 1 }, (_, index) => {
    const start = (area.top + index) * PANEL.width;
    return picture.subarray((start + area.left) * BYTES_PER_PIXEL, (start + area.right + 1) * BYTES_PER_PIXEL);
  });
  return Buffer.concat([headerOf(COMMANDS.bitmap, area), ...rows]);
}
