import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { reasonOf } from '../../../lib/errors.ts';
import type { Logger } from '../../../lib/log.ts';
import type { Display, DisplayDriver, DisplayIo, Frame, PixelFrame, PixelSurface } from '../contract.ts';
import { closedFault, displayFault } from '../fault.ts';
import { type Child, startChild } from '../io/child.ts';
import { type Rotated, rotated } from '../pixels/rotate.ts';
import {
  LED_MATRIX_PACKAGE,
  type LedMatrixAnswer,
  type LedMatrixOptions,
  ledMatrixAnswer,
  ledMatrixOptions,
  matrixSize,
  setupFor,
} from './led-matrix.options.ts';
import { expectPixels } from './pixel-options.ts';

const CHILD = fileURLToPath(new URL('./led-matrix.child.ts', import.meta.url));
/** The time in which Node and the addon start on the slowest board. */
const START_TIMEOUT_MS = 8_000;
/** This is shorter than the agent's timeout of a draw, so that the agent reports this error and not its own. */
const DRAW_TIMEOUT_MS = 3_000;
const ANSWER_SHOWN_CHARS_MAX = 100;

/** No other package and no image has the addon, because of its licence. */
const MISSING_FIX = `sudo apt-get install ${LED_MATRIX_PACKAGE}, or in a checkout npm install rpi-led-matrix, which is compiled: sudo apt-get install g++ make python3 first`;
/** Debian's own kernel has this feature; the kernel of Raspberry Pi OS does not. */
const GUARDED_FIX =
  'this kernel guards the memory of the pins (CONFIG_IO_STRICT_DEVMEM): add iomem=relaxed to /boot/firmware/cmdline.txt and restart';
const FIX =
  'check the options against the panels, run the agent as root (the pins need it), and see README of rpi-rgb-led-matrix';

/** Drives LED panels (HUB75) on the pins of a Raspberry Pi up to 4, by rpi-led-matrix in its own process. */
export const ledMatrix: DisplayDriver<LedMatrixOptions> = {
  name: 'led-matrix',
  summary: 'LED panels (HUB75) on a Raspberry Pi up to 4, by a package of their own',
  needsLinux: true,
  options: ledMatrixOptions,
  example: ledMatrixOptions.parse({ rows: 64, cols: 64, chainLength: 2, hardwareMapping: 'adafruit-hat-pwm' }),
  open: async (options, io, signal) => {
    await checkMachine(options, io.log);
    signal.throwIfAborted();
    const child = startChild(CHILD, io.clock);
    const display = new LedMatrixDisplay(child, options, io);
    const stop = () => void child.close();
    signal.addEventListener('abort', stop);
    try {
      await display.start();
    } catch (error) {
      await display.close();
      throw error;
    } finally {
      signal.removeEventListener('abort', stop);
    }
    return display;
  },
};

/** Checks the machine. Without the hardware the addon would crash, and with the wrong one it would exit. */
async function checkMachine({ root, hardwarePulsing }: LedMatrixOptions, log: Logger): Promise<void> {
  const model = (await readFile(join(root, 'proc/device-tree/model'), 'utf8').catch(() => ''))
    .replaceAll('\0', '')
    .trim();
  const otherDisplay = 'use a Raspberry Pi 3, 4 or Zero 2 W, or choose another display';
  if (!model.startsWith('Raspberry Pi')) {
    const machine = model === '' ? 'this machine' : model;
    throw displayFault(`LED panels need the pins of a Raspberry Pi; ${machine} is none`, otherDisplay);
  }
  if (/Raspberry Pi (5|Compute Module 5)/.test(model)) {
    throw displayFault(`the LED matrix addon does not know the pins of ${model}`, otherDisplay);
  }
  const modules = await readFile(join(root, 'proc/modules'), 'utf8').catch(() => '');
  if (!/^snd_bcm2835 /m.test(modules)) return;
  const fix =
    'set dtparam=audio=off in /boot/firmware/config.txt and restart, or hardwarePulsing: false; sound then needs a USB card';
  if (hardwarePulsing) {
    throw displayFault('the sound of the Pi itself (snd_bcm2835) is on, which excludes LED panels', fix);
  }
  log.warn('led-matrix-disturbed', { reason: 'snd_bcm2835 is loaded: panels may flicker', fix });
}

class LedMatrixDisplay implements Display {
  readonly surface: PixelSurface;
  readonly #child: Child;
  readonly #options: LedMatrixOptions;
  readonly #turn: Rotated['turn'];
  #shown: Buffer | undefined;
  #failed: Error | undefined;
  #closed = false;

  constructor(child: Child, options: LedMatrixOptions, io: DisplayIo) {
    const { surface, turn } = rotated(matrixSize(options), options.rotation);
    this.surface = surface;
    this.#turn = turn;
    this.#child = child;
    this.#options = options;
    void child.ended.then((how) => {
      if (this.#closed) return;
      this.#fail(how);
      // The agent draws, gets the failure, and opens the display again.
      io.requestDraw();
    });
  }

  /** Starts the child. Throws a PayboxError `DISPLAY_FAULT` when the addon does not start. */
  async start(): Promise<void> {
    await this.#ask(Buffer.from(JSON.stringify(setupFor(this.#options))), START_TIMEOUT_MS);
  }

  async draw(frame: Frame): Promise<void> {
    if (this.#closed) throw closedFault();
    if (this.#failed !== undefined) throw this.#failed;
    const pixels = rgbOf(this.#turn(expectPixels(frame, this.surface)));
    if (this.#shown?.equals(pixels)) return;
    await this.#ask(pixels, DRAW_TIMEOUT_MS);
    this.#shown = pixels;
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#child.close();
  }

  async #ask(message: Uint8Array, timeoutMs: number): Promise<void> {
    const line = await this.#child.ask(message, timeoutMs).catch((error: unknown) => {
      throw this.#fail(reasonOf(error));
    });
    const answer = answerIn(line);
    if (answer === undefined) throw this.#fail(`answered ${JSON.stringify(line.slice(0, ANSWER_SHOWN_CHARS_MAX))}`);
    if ('error' in answer) throw this.#fail(`refused: ${answer.error}`);
  }

  #fail(how: string): Error {
    this.#failed ??= displayFault(`the LED matrix process ${how}`, fixOf(how));
    return this.#failed;
  }
}

function fixOf(how: string): string {
  if (/Cannot find (package|module)/.test(how)) return MISSING_FIX;
  return how.includes('mmap error') ? GUARDED_FIX : FIX;
}

/** Returns the answer in a line; undefined for other text, because libraries of the addon may write to the pipe too. */
function answerIn(line: string): LedMatrixAnswer | undefined {
  try {
    return ledMatrixAnswer.safeParse(JSON.parse(line)).data;
  } catch {
    return undefined;
  }
}

function rgbOf({ data }: PixelFrame): Buffer {
  const rgb = Buffer.alloc((data.length / 4) * 3);
  for (let from = 0, to = 0; from < data.length; from += 4, to += 3) {
    rgb[to] = data[from] ?? 0;
    rgb[to + 1] = data[from + 1] ?? 0;
    rgb[to + 2] = data[from + 2] ?? 0;
  }
  return rgb;
}
