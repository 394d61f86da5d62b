import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import decodeQr from 'qr/decode.js';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ledMatrixOptions } from '../../../src/device/display/drivers/led-matrix.options.ts';
import { ledMatrix } from '../../../src/device/display/drivers/led-matrix.ts';
import { openRenderer } from '../../../src/device/display/render.ts';
import { eventually, temporaryFolder } from '../../support/net.ts';
import { PROGRAMS, without } from '../../support/programs.ts';
import { asDots, FakeLedMatrix } from '../emulators/led-matrix.ts';
import { compilePins, shownBy } from '../emulators/led-pins.ts';
import { testIo } from '../io.ts';
import { glyphCache, type Picture, pixelAt } from '../pictures.ts';
import { PAYMENT, QR_CODE } from '../scenes.ts';
import { installedAddon } from './installed-addon.ts';

const glyphs = glyphCache();
const compiler = without(PROGRAMS.gcc);
const missing = compiler.missing || installedAddon() === undefined;
const note = compiler.note || (missing ? ' (rpi-led-matrix is not installed)' : '');

/** Bright, and with few shades: every write to a pin costs microseconds here. */
const QUICK = { hardwareMapping: 'adafruit-hat-pwm', brightness: 100, pwmBits: 2, gpioSlowdown: 0 } as const;

/** The QR in a picture of lamps; undefined where there is none, as in the first refreshes. */
function readIn(picture: Picture | undefined): string | undefined {
  try {
    return picture === undefined ? undefined : decodeQr(asDots(picture));
  } catch {
    return undefined;
  }
}

describe.skipIf(missing)(`rpi-led-matrix on the pins of a Raspberry Pi${note}`, () => {
  async function openOnPins(chainLength: number, variables: Readonly<Record<string, string>> = {}) {
    const folder = await temporaryFolder();
    const recording = join(folder, 'pins');
    const more = { LD_PRELOAD: compilePins(join(folder, 'pins.so')), LED_PINS_RECORD: recording, ...variables };
    const before = Object.keys(more).map((name) => [name, process.env[name]] as const);
    Object.assign(process.env, more);
    onTestFinished(() => {
      for (const [name, value] of before) {
        if (value === undefined) delete process.env[name];
        else process.env[name] = value;
      }
    });
    const { root } = new FakeLedMatrix(folder).options;
    const options = ledMatrixOptions.parse({ ...QUICK, chainLength, root });
    const display = await ledMatrix.open(options, testIo(glyphs.cacheDir), new AbortController().signal);
    onTestFinished(() => display.close());
    const renderer = await openRenderer(display.surface, testIo(glyphs.cacheDir));
    const size = { cols: 64 * chainLength, rows: 64 };
    return { display, renderer, shown: () => shownBy(readFileSync(recording), size) };
  }

  it('an LED matrix clocks out a payment whose QR is read off the lit rows', async () => {
    const { display, renderer, shown } = await openOnPins(1);
    await display.draw(renderer.render(PAYMENT), PAYMENT);
    await eventually('the QR in the rows', () => readIn(shown()) === QR_CODE);
  });

  it('an LED matrix names a kernel that guards the pins', async () => {
    await expect(openOnPins(1, { LED_PINS_GUARDED: '1' })).rejects.toMatchObject({
      code: 'DISPLAY_FAULT',
      fix: expect.stringContaining('iomem=relaxed'),
    });
  });

  it('an LED matrix lights every LED of a chain in its own colour', async () => {
    const { display, shown } = await openOnPins(2);
    const COLOURS = [0xff0000, 0x00ff00, 0x0000ff, 0xffffff, 0x000000, 0xffff00, 0xff00ff, 0x00ffff];
    const colourAt = (x: number, y: number) => COLOURS[(x * 3 + y * 5 + (x >> 4)) % COLOURS.length] ?? 0;
    const data = new Uint8Array(128 * 64 * 4).fill(255);
    const each = (visit: (x: number, y: number) => void) => {
      for (let pixel = 0; pixel < 128 * 64; pixel += 1) visit(pixel % 128, Math.floor(pixel / 128));
    };
    each((x, y) => {
      const colour = colourAt(x, y);
      data.set([colour >> 16, (colour >> 8) & 255, colour & 255], (y * 128 + x) * 4);
    });
    await display.draw({ kind: 'pixels', width: 128, height: 64, data }, PAYMENT);
    let wrong: string[] = ['nothing is lit'];
    await eventually('the colours', () => {
      const picture = shown();
      if (picture === undefined) return false;
      wrong = [];
      each((x, y) => void (pixelAt(picture, x, y) === colourAt(x, y) || wrong.push(`${x},${y}`)));
      return wrong.length === 0;
    }).catch((error: unknown) => {
      throw new Error(`${error}: ${wrong.length} LEDs, as ${wrong.slice(0, 10).join(' ')}`);
    });
  });
});
