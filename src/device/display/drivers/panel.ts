import { z } from 'zod';
import { withDeadline } from '../../../lib/clock.ts';
import { PayboxError, reasonOf } from '../../../lib/errors.ts';
import type { Scene } from '../../scene.ts';
import {
  type Display,
  type DisplayIo,
  type Frame,
  GOODBYE_TIMEOUT_MS,
  type PanelFrame,
  type PanelSurface,
  type Refresh,
  type SerialLine,
  type SerialSettings,
} from '../contract.ts';
import { closedFault, displayFault } from '../fault.ts';

/** This is shorter than the agent's timeout of a draw, so that the error names the cause. */
export const DRAW_TIMEOUT_MS = 4_000;
/** Panels answer within tens of milliseconds. Without an answer in this time the driver tries a command again. */
export const PATIENCE_MS = 300;
/**
 * The driver asks a panel that answers this often whether it still shows the frame. That takes at most 13 bytes,
 * usually.
 */
export const ASK_EVERY_MS = 5_000;
/**
 * A panel without answers receives its QR again after this time. Customers see that, because it takes tenths of a
 * second.
 */
export const REPEAT_QR_EVERY_MS = 15_000;

export const serialPath = z.string().min(1).describe('the serial port, best by a name that stays: /dev/serial/by-id/…');

/** The texts of a panel frame, by their names in configurations. */
export const PANEL_TEXTS = [
  'title',
  'amount',
  'content',
  'holder',
  'account',
  'timeLeft',
  'hint',
  'offline',
] as const satisfies readonly (keyof PanelFrame)[];
export type PanelText = (typeof PANEL_TEXTS)[number];

/** Returns an option for each kind of screen, with the same default. */
export function eachScreen<T extends z.ZodType>(option: T) {
  const screens = {
    starting: option,
    connecting: option,
    enrol: option,
    setup: option,
    certificate: option,
    unlinked: option,
    idle: option,
    payment: option,
    paid: option,
    repeat: option,
    expired: option,
    cancelled: option,
    account: option,
    fault: option,
    history: option,
    'too-dense': option,
    blank: option,
  } satisfies Record<Scene['kind'], T>;
  return z.strictObject(screens);
}

/** Returns an option for each text, by its place in PANEL_TEXTS. */
export function eachText<T extends z.ZodType>(option: (index: number) => T) {
  const texts = Object.fromEntries(PANEL_TEXTS.map((name, index) => [name, option(index)]));
  return z.strictObject(texts as Record<PanelText, T>);
}

/** Returns the text, or its beginning with `…`, so that `fits` is true. */
export function shortened(text: string, fits: (text: string) => boolean, ellipsis: string): string {
  if (fits(text)) return text;
  const chars = Array.from(text);
  while (chars.length > 0 && !fits(chars.join('') + ellipsis)) chars.pop();
  return chars.length === 0 ? '' : chars.join('') + ellipsis;
}

/** The commands of a make of panel. */
export interface PanelDialect {
  surface: PanelSurface;
  /** Makes the panel show the frame. Settles once it does. */
  show(frame: PanelFrame, scene: Scene): Promise<void>;
  /** Checks or repeats the picture as `Refresh` does. */
  refresh: { everyMs: number; run(frame: PanelFrame, scene: Scene): Promise<void> };
  /** Removes a QR that is, or may be, on the panel. */
  goodbye(): Promise<void>;
}

/** Opens the port of a panel that answers, and finds the panel there. Throws as `openSerial` and `greet` do. */
export async function openPanel(
  { path, baudRate }: SerialSettings,
  io: DisplayIo,
  signal: AbortSignal,
  make: (line: SerialLine) => { display: Display; greet(signal: AbortSignal): Promise<void> },
): Promise<Display> {
  const line = await io.openSerial({ path, baudRate }, signal);
  try {
    const panel = make(line);
    await panel.greet(signal);
    return panel.display;
  } catch (error) {
    await line.close();
    throw error;
  }
}

/** Implements the common part of all smart panels. After a failure the panel is closed for good. */
export class PanelDisplay implements Display {
  readonly surface: PanelSurface;
  readonly refresh: Refresh;
  readonly #line: SerialLine;
  readonly #io: DisplayIo;
  readonly #dialect: PanelDialect;
  #failure: PayboxError | undefined;
  #open = true;
  #drawing: Promise<void> = Promise.resolve();
  #closing: Promise<void> | undefined;

  constructor(line: SerialLine, path: string, io: DisplayIo, dialect: PanelDialect) {
    const { surface, refresh } = dialect;
    this.surface = surface;
    this.refresh = {
      everyMs: refresh.everyMs,
      run: (frame, scene) => this.#work((panelFrame) => refresh.run(panelFrame, scene), frame),
    };
    this.#line = line;
    this.#io = io;
    this.#dialect = dialect;
    void line.lost.then((reason) => this.fail(displayFault(`${path} is lost: ${reason}`, 'plug the device in again')));
  }

  draw(frame: Frame, scene: Scene): Promise<void> {
    return this.#work((panelFrame) => this.#dialect.show(panelFrame, scene), frame);
  }

  async #work(work: (frame: PanelFrame) => Promise<void>, frame: Frame): Promise<void> {
    if (!this.#open) throw closedFault();
    if (this.#failure !== undefined) throw this.#failure;
    if (frame.kind !== 'panel') throw displayFault(`a frame was laid out for ${frame.kind}, not for a panel`, '');
    try {
      const drawing = work(frame);
      this.#drawing = drawing;
      await drawing;
    } catch (error) {
      this.#failure ??= error instanceof PayboxError ? error : displayFault(reasonOf(error), '', error);
      throw this.#failure;
    }
  }

  /** Records a failure, and makes the agent draw, which throws it. */
  fail(failure: PayboxError): void {
    if (!this.#open || this.#failure !== undefined) return;
    this.#failure = failure;
    this.#io.requestDraw();
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#open = false;
    // A panel that has failed may still show a QR, so it gets the goodbye too.
    const told = this.#drawing.catch(() => {}).then(() => this.#dialect.goodbye());
    await withDeadline(
      this.#io.clock,
      GOODBYE_TIMEOUT_MS,
      told.catch(() => {}),
    );
    await this.#line.close();
  }
}
