import { z } from 'zod';
import { type DailySpan, isWithin, withDeadline } from '../../../lib/clock.ts';
import { reasonOf } from '../../../lib/errors.ts';
import { mayHoldQr, type Scene } from '../../scene.ts';
import {
  type Display,
  type DisplayDriver,
  type DisplayIo,
  type Frame,
  GOODBYE_TIMEOUT_MS,
  type PixelSurface,
} from '../contract.ts';
import { closedFault } from '../fault.ts';
import { detachConsole } from '../io/console.ts';
import { type Framebuffer, type FramebufferInfo, findFramebuffer, openFramebuffer } from '../io/framebuffer.ts';
import { packRgb565, packXrgb8888 } from '../io/pixel-bytes.ts';
import { wordsOf } from '../pixels/canvas.ts';
import { type Rotated, rotated } from '../pixels/rotate.ts';
import { expectPixels, rotation } from './pixel-options.ts';

const REPAINT_SECONDS_MAX = 86_400;
/** The longest delay with which the screen goes dark or is lit again. */
const NIGHT_CHECK_MS = 15_000;

const timeOfDay = z.string().regex(/^([01]\d|2[0-3]):[0-5]\d$/, 'expected a time of day as HH:MM');

export const framebufferOptions = z
  .strictObject({
    name: z.string().min(1).optional().describe('which one, as cat /sys/class/graphics/fb*/name says'),
    device: z
      .string()
      .regex(/^\/dev\/fb\d+$/, 'expected a device as /dev/fb0')
      .optional()
      .describe('which one by its number, which may change when another display is attached'),
    rotation,
    repaintSeconds: z
      .int()
      .min(0)
      .max(REPAINT_SECONDS_MAX)
      .default(60)
      .describe('how often everything is written anew, in case something drew over it; 0 is never'),
    blankFrom: timeOfDay.optional().describe('local time from which an idle screen is dark'),
    blankTo: timeOfDay.optional().describe('local time from which it is lit again'),
    root: z.string().min(1).default('/').describe('the folder that holds sys and dev'),
  })
  .refine(
    (it) => (it.blankFrom === undefined) === (it.blankTo === undefined),
    'expected blankFrom and blankTo together',
  )
  .refine((it) => it.blankFrom === undefined || it.blankFrom !== it.blankTo, 'expected blankFrom other than blankTo');
type Options = z.infer<typeof framebufferOptions>;

/** Drives a screen of this machine (HDMI, DSI, SPI with a kernel driver), by its framebuffer device. */
export const framebuffer: DisplayDriver<Options> = {
  name: 'framebuffer',
  summary: 'a screen with a Linux framebuffer of 16 or 32 bits: HDMI, DSI or SPI',
  needsLinux: true,
  options: framebufferOptions,
  example: { name: 'vc4drmfb', rotation: 0, repaintSeconds: 60, blankFrom: '23:00', blankTo: '06:00', root: '/' },
  open: async (given, io, signal) => {
    const info = await findFramebuffer(given, given.root);
    signal.throwIfAborted();
    const device = await openFramebuffer(info);
    const giveConsoleBack = await detachConsole(given.root, io.log);
    return new FramebufferDisplay(info, device, giveConsoleBack, given, io);
  },
};

class FramebufferDisplay implements Display {
  readonly surface: PixelSurface;
  readonly #info: FramebufferInfo;
  readonly #device: Framebuffer;
  readonly #giveConsoleBack: () => Promise<void>;
  readonly #io: DisplayIo;
  readonly #turn: Rotated['turn'];
  readonly #night: DailySpan | undefined;
  readonly #closing = new AbortController();
  /** The next picture in the device's bytes; rows are padded to the stride. Swapped with `#spare`. */
  #image: Uint8Array;
  #spare: Uint8Array;
  /** The picture on the device; undefined if not known. */
  #shown: Uint8Array | undefined;
  #scene: Scene | undefined;
  /** True while the screen is dark; undefined if not known, as after an earlier program was killed. */
  #dark: boolean | undefined;
  #failed: unknown;
  /** The promise of the last write. Writes run one after the other. */
  #writing: Promise<void> = Promise.resolve();

  constructor(
    info: FramebufferInfo,
    device: Framebuffer,
    giveConsoleBack: () => Promise<void>,
    given: Options,
    io: DisplayIo,
  ) {
    const turned = rotated(info, given.rotation);
    this.surface = turned.surface;
    this.#turn = turned.turn;
    this.#info = info;
    this.#device = device;
    this.#giveConsoleBack = giveConsoleBack;
    this.#io = io;
    this.#image = new Uint8Array(info.strideBytes * info.height);
    this.#spare = new Uint8Array(info.strideBytes * info.height);
    const { blankFrom, blankTo, repaintSeconds } = given;
    if (blankFrom !== undefined && blankTo !== undefined) this.#night = { from: blankFrom, to: blankTo };
    if (repaintSeconds > 0) void this.#every(repaintSeconds * 1000, () => this.#forget());
    if (this.#night !== undefined) void this.#every(NIGHT_CHECK_MS, () => {});
  }

  async draw(frame: Frame, scene: Scene): Promise<void> {
    if (this.#closing.signal.aborted) throw closedFault();
    const pixels = expectPixels(frame, this.surface);
    await this.#sync(() => {
      [this.#image, this.#spare] = [this.#spare, this.#image];
      pack(wordsOf(this.#turn(pixels)), this.#image, this.#info);
      this.#scene = scene;
    });
  }

  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort();
    const written = this.#writing.then(() => this.#restore());
    await withDeadline(
      this.#io.clock,
      GOODBYE_TIMEOUT_MS,
      written.catch(() => {}),
    );
    await this.#device.close();
    // The console would draw over a picture that must stay.
    if (!this.#pictureStays()) await this.#giveConsoleBack();
  }

  #pictureStays(): boolean {
    const scene = this.#scene;
    return this.#failed === undefined && scene !== undefined && scene.kind !== 'blank' && !mayHoldQr(scene);
  }

  async #restore(): Promise<void> {
    if (!this.#pictureStays()) await this.#device.writeRows(new Uint8Array(this.#image.length), 0);
    if (this.#dark) await this.#device.blank(false);
  }

  /** Makes the change, then updates the device. A failure makes the display unusable. */
  #sync(change: () => void): Promise<void> {
    const work = this.#writing.then(async () => {
      if (this.#failed !== undefined) throw this.#failed;
      change();
      const dark = this.#isDark();
      const blanked = dark && (await this.#device.blank(true));
      await this.#write(dark && !blanked ? new Uint8Array(this.#image.length) : this.#image);
      // The driver switches the light on only when the picture is complete.
      if (this.#dark !== false && !dark) await this.#device.blank(false);
      this.#dark = dark;
    });
    this.#writing = work.catch((error: unknown) => {
      this.#failed = error;
    });
    return work;
  }

  #forget(): void {
    this.#shown = undefined;
  }

  /**
   * Returns whether the screen is dark. It shows payments at any hour, but at night screens that only wait are dark.
   */
  #isDark(): boolean {
    const waits = ['starting', 'connecting', 'unlinked', 'idle', 'blank'].includes(this.#scene?.kind ?? 'starting');
    return waits && this.#night !== undefined && isWithin(this.#night, this.#io.clock.wallMs());
  }

  /** Writes the runs of rows that differ from the shown picture. */
  async #write(image: Uint8Array): Promise<void> {
    const shown = this.#shown;
    this.#shown = undefined;
    const { height, strideBytes } = this.#info;
    const rowOf = (bytes: Uint8Array, row: number) => bytes.subarray(row * strideBytes, (row + 1) * strideBytes);
    const differs = (row: number) => shown === undefined || Buffer.compare(rowOf(image, row), rowOf(shown, row)) !== 0;
    for (let row = 0; row < height; row += 1) {
      if (!differs(row)) continue;
      const first = row;
      while (row + 1 < height && differs(row + 1)) row += 1;
      await this.#device.writeRows(image.subarray(first * strideBytes, (row + 1) * strideBytes), first);
    }
    this.#shown = image;
  }

  async #every(ms: number, change: () => void): Promise<void> {
    const { signal } = this.#closing;
    for (;;) {
      await this.#io.clock.sleep(ms, signal);
      if (signal.aborted) return;
      try {
        await this.#sync(change);
      } catch (error) {
        this.#io.log.warn('repaint-failed', { reason: reasonOf(error) });
        // The agent draws, gets the failure, and opens the display again.
        this.#io.requestDraw();
        return;
      }
    }
  }
}

/** Writes the pixels into the rows of `image`. The padding of rows stays. */
function pack(words: Uint32Array, image: Uint8Array, info: FramebufferInfo): void {
  const { width, height, strideBytes, bitsPerPixel } = info;
  const view = new DataView(image.buffer);
  const packRow = bitsPerPixel === 16 ? packRgb565 : packXrgb8888;
  for (let row = 0; row < height; row += 1) {
    packRow(words.subarray(row * width, (row + 1) * width), view, row * strideBytes);
  }
}
