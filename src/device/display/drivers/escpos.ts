import { dirname, join } from 'node:path';
import { z } from 'zod';
import { withDeadline } from '../../../lib/clock.ts';
import { reasonOf } from '../../../lib/errors.ts';
import { readFileText, replaceOwnFile } from '../../../lib/files.ts';
import { makeFolder } from '../../../lib/folders.ts';
import type { Scene } from '../../scene.ts';
import type { Display, DisplayDriver, DisplayIo, Frame, PanelFrame, PanelSurface } from '../contract.ts';
import { displayFault } from '../fault.ts';
import { longestCommand, RASTER_COMMANDS } from './escpos-raster.ts';
import { type Medium, slipOf } from './escpos-slip.ts';
import { REPEAT_QR_EVERY_MS } from './panel.ts';
import { SerialScreen, serialOptions } from './serial-screen.ts';

/** The printable width in dots, at 203 dots per inch. */
const PAPER_DOTS = { '58mm': 384, '80mm': 576 } as const;
const STATUS_TIMEOUT_MS = 1_000;
/** This command (DLE EOT 4) asks for the status of the paper sensors at once. */
const PAPER_STATUS = Uint8Array.of(0x10, 0x04, 4);
/** In every status byte bits 1 and 4 are set, and bits 0 and 7 are not. */
const STATUS_FIXED = { mask: 0x93, value: 0x12 };
/** With bits 5 and 6 there is no paper. */
const PAPER_END = 0x60;
const CLEAR = Uint8Array.of(0x1b, 0x40, 0x0c);

const options = z.strictObject({
  ...serialOptions(9600),
  mode: z.enum(['print', 'show']).default('print').describe('a printer, or a customer display that draws a QR'),
  paper: z.enum(['58mm', '80mm']).default('80mm').describe('the width of the paper'),
  qr: z
    .enum(['auto', 'native', 'raster'])
    .default('auto')
    .describe('native: the device makes the QR (GS ( k); raster: it gets a picture; auto: raster on 58mm paper'),
  raster: z
    .enum(RASTER_COMMANDS)
    .default('gs-v-0')
    .describe('the command for a picture: GS v 0, or ESC * of old devices'),
  dots: z.int().min(128).max(1_024).optional().describe('dots across, where they differ: 58mm has 384, 80mm 576'),
  moduleDotsMax: z.int().min(1).max(16).default(8).describe('the largest QR module that the device takes, in dots'),
  charsMax: z.int().min(20).max(2_000).default(512).describe('the longest QR payload that the device takes'),
  cut: z.boolean().default(true).describe('whether the printer has a knife'),
  checkPaper: z.boolean().default(true).describe('ask for paper before printing; false where nothing answers'),
});
type Options = z.infer<typeof options>;

/**
 * Drives ESC/POS devices. They make a QR themselves, or get its picture. A printer prints one slip per push and
 * one receipt per payment, even if the box draws them again. A customer display shows every scene. Nobody can read
 * their contents back, so a payload that noise has changed is printed or shown. A display gets its QR again at
 * intervals, with a blink of the screen, in case it has lost its power. A printer does not, because paper needs no
 * power, and the driver checks the printer before each slip.
 */
export const escpos: DisplayDriver<Options> = {
  name: 'escpos',
  summary: 'an ESC/POS receipt printer or customer display, which makes the QR itself or gets its picture',
  options,
  example: options.parse({ path: '/dev/ttyUSB0', paper: '80mm' }),
  open: async (given, io, signal) => {
    const { path, baudRate, charsMax } = given;
    const { dots, raster } = mediumOf(given);
    const halfSentMax = raster === undefined ? charsMax : Math.max(charsMax, longestCommand(dots));
    // The NULs complete a command that an earlier program left half sent. Otherwise they do nothing.
    const screen = await SerialScreen.open({ path, baudRate }, new Uint8Array(halfSentMax), io, signal);
    if (given.mode === 'show') return shower(screen, given);
    const printer = new Printer(screen, given, io);
    await screen.orClosed(printer.begin());
    return printer;
  },
};

function surfaceOf({ paper, dots, charsMax, moduleDotsMax }: Options): PanelSurface {
  const sidePixels = dots ?? PAPER_DOTS[paper];
  return { kind: 'panel', accents: false, qr: { sidePixels, charsMax, modulePixelsMax: moduleDotsMax } };
}

function mediumOf(given: Options): Medium {
  const { mode, paper, dots, moduleDotsMax, cut, qr, raster: command, baudRate } = given;
  // Printers that make no QR are small ones with this paper. Wide printers make it, and so do displays that draw one.
  const isPicture = qr === 'raster' || (qr === 'auto' && mode === 'print' && paper === '58mm');
  const raster = isPicture ? { command, baudRate } : undefined;
  return { dots: dots ?? PAPER_DOTS[paper], moduleDotsMax, cut: mode === 'show' ? undefined : cut, raster };
}

function expectPanel(frame: Frame): PanelFrame {
  if (frame.kind === 'panel') return frame;
  throw displayFault('a frame was laid out for another screen than one that makes the QR itself', '');
}

/** Returns a display of every scene, without the time left, because each second would draw the whole screen again. */
function shower(screen: SerialScreen, given: Options): Display {
  let shown: Buffer | undefined;
  let qrMayShow = false;
  return {
    surface: surfaceOf(given),
    draw: async (frame) => {
      screen.expectOpen();
      const panel = expectPanel(frame);
      const wanted = Buffer.from(slipOf(panel, mediumOf(given)));
      qrMayShow ||= panel.qrCode !== null;
      await screen.send(shown?.equals(wanted) ? new Uint8Array() : wanted);
      shown = wanted;
      qrMayShow = panel.qrCode !== null;
    },
    refresh: {
      everyMs: REPEAT_QR_EVERY_MS,
      run: () => screen.send(qrMayShow && shown !== undefined ? shown : new Uint8Array()),
    },
    close: () => screen.close(qrMayShow ? CLEAR : new Uint8Array()),
  };
}

/** These words head the slip of a repeated payment, so that nobody mistakes it for another payment. */
const COPY = 'BAN SAO';

class Printer implements Display {
  readonly surface: PanelSurface;
  readonly #screen: SerialScreen;
  readonly #options: Options;
  readonly #io: DisplayIo;
  readonly #recordPath: string;
  #printed: Printed = NOTHING_PRINTED;
  /** The payment that the printer has copied and that a person still asks for. It prints no second copy. */
  #copied: string | undefined;

  constructor(screen: SerialScreen, given: Options, io: DisplayIo) {
    this.surface = surfaceOf(given);
    this.#screen = screen;
    this.#options = given;
    this.#io = io;
    this.#recordPath = recordPath(io.cacheDir, given.path);
  }

  /** Checks the paper, so that a printer without paper fails at the start. */
  async begin(): Promise<void> {
    this.#printed = await readPrinted(this.#recordPath);
    await this.#checkPaper();
  }

  async draw(frame: Frame, scene: Scene): Promise<void> {
    this.#screen.expectOpen();
    const panel = expectPanel(frame);
    const after = printedAfter(scene, this.#printed);
    const { pushId, receipt } = this.#printed;
    const isNew = after.pushId !== pushId || (after.receipt !== null && after.receipt !== receipt);
    const copied = scene.kind === 'repeat' ? scene.transactionId : undefined;
    const isCopy = copied !== undefined && copied !== this.#copied;
    // The driver sends even an empty text, so that it notices a lost printer.
    if (isNew || isCopy) await this.#checkPaper();
    const slip = { ...panel, offline: '', title: isCopy ? `${COPY} - ${panel.title}` : panel.title };
    await this.#screen.send(isNew || isCopy ? slipOf(slip, mediumOf(this.#options)) : new Uint8Array());
    this.#copied = copied;
    if (!isNew && after.receipt === receipt) return;
    this.#printed = after;
    await writePrinted(this.#recordPath, after, this.#io.log);
  }

  close(): Promise<void> {
    return this.#screen.close();
  }

  async #checkPaper(): Promise<void> {
    if (!this.#options.checkPaper) return;
    const { path } = this.#options;
    const answered = Promise.withResolvers<number>();
    const stop = this.#screen.onData((bytes) => {
      const status = bytes.find((byte) => (byte & STATUS_FIXED.mask) === STATUS_FIXED.value);
      if (status !== undefined) answered.resolve(status);
    });
    try {
      await this.#screen.send(PAPER_STATUS);
      const status = await withDeadline(this.#io.clock, STATUS_TIMEOUT_MS, answered.promise);
      if (status === undefined) {
        throw displayFault(
          `the printer on ${path} does not answer`,
          'check that it is on, closed and at this baudRate; set checkPaper: false when its answers are not wired',
        );
      }
      if ((status & PAPER_END) !== 0) throw displayFault(`the printer on ${path} has no paper`, 'put in a new roll');
    } finally {
      stop();
    }
  }
}

/** Returns the record after this scene was drawn. */
function printedAfter(scene: Scene, { pushId, receipt }: Printed): Printed {
  if (scene.kind === 'payment') return { pushId: scene.pushId, receipt };
  if (scene.kind === 'paid') return { pushId, receipt: scene.transactionId };
  return { pushId, receipt };
}

const record = z.object({
  /** The push of the last printed slip. */
  pushId: z.string().nullable(),
  /** The transactionId of the last printed receipt. */
  receipt: z.string().nullable(),
});

/** The last prints, which must not be printed again after a restart. */
type Printed = z.infer<typeof record>;

const NOTHING_PRINTED: Printed = { pushId: null, receipt: null };

/** Returns the file of a printer, named after its port. */
function recordPath(cacheDir: string, port: string): string {
  return join(cacheDir, `escpos-${port.replaceAll(/[^A-Za-z0-9]+/g, '-')}.json`);
}

/** Reads the record. A missing or unreadable file counts as nothing printed. */
export async function readPrinted(path: string): Promise<Printed> {
  try {
    return record.parse(JSON.parse(await readFileText(path)));
  } catch {
    return NOTHING_PRINTED;
  }
}

/** Writes the record. A failed write is only logged, because the slip is printed and the payment must continue. */
async function writePrinted(path: string, printed: Printed, log: DisplayIo['log']): Promise<void> {
  try {
    makeFolder(dirname(path), 0o700);
    await replaceOwnFile(path, JSON.stringify(printed));
  } catch (error) {
    log.warn('slip-not-recorded', { path, reason: reasonOf(error) });
  }
}
