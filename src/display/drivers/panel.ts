import { z } from 'zod';
import { withDeadline } from '../../lib/clock.ts';
import { PayboxError, reasonOf } from '../../lib/errors.ts';
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
} from '../contract.ts';
import { closedFault, displayFault } from '../fault.ts';

/** A draw gives up before the agent does, so that what failed is named. */
export const DRAW_TIMEOUT_MS = 4_000;
/** A panel that answers is asked so often whether it still shows what was drawn, with 13 bytes at most for usual names. */
export const ASK_EVERY_MS = 5_000;
/** One that answers nothing is sent its QR again so often. A customer sees that, as it draws for tenths of a second. */
export const REPEAT_QR_EVERY_MS = 15_000;

export const serialPath = z.string().min(1).describe('the serial port, best by a name that stays: /dev/serial/by-id/…');

/** The texts of a panel frame, by the name that configurations give them too. */
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

/** An option for each screen that a scene can be, with the same default. */
export function eachScreen<T extends z.ZodType>(option: T) {
  const screens = {
    starting: option,
    connecting: option,
    enrol: option,
    setup: option,
    unlinked: option,
    idle: option,
    payment: option,
    paid: option,
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

/** The text, or as much of it as `fits` with a `…` at its end. */
export function shortened(text: string, fits: (text: string) => boolean, ellipsis: string): string {
  if (fits(text)) return text;
  const chars = Array.from(text);
  while (chars.length > 0 && !fits(chars.join('') + ellipsis)) chars.pop();
  return chars.length === 0 ? '' : chars.join('') + ellipsis;
}

/** How a make of panel is told what to show. */
export interface PanelDialect {
  surface: PanelSurface;
  /** Brings the panel from what it shows to the frame, and settles when it does show it. */
  show(frame: PanelFrame, scene: Scene): Promise<void>;
  /** As `Refresh` has it. */
  refresh: { everyMs: number; run(frame: PanelFrame, scene: Scene): Promise<void> };
  /** Takes the QR away where one is, or may be, on the panel. */
  goodbye(): Promise<void>;
}

/** An open smart panel: what is the same for all of them. After a failure it is spent, as the contract asks. */
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

  /** Spends a display that is not as it was left. The agent is asked for a drawing, which then meets the failure. */
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
    // A panel that has failed may still show a QR, so that it is told as well.
    const told = this.#drawing.catch(() => {}).then(() => this.#dialect.goodbye());
    await withDeadline(
      this.#io.clock,
      GOODBYE_TIMEOUT_MS,
      told.catch(() => {}),
    );
    await this.#line.close();
  }
}
