import { type Clock, withDeadline } from '../../../lib/clock.ts';
import { PayboxError, reasonOf } from '../../../lib/errors.ts';
import type { Logger } from '../../../lib/log.ts';
import type { Display, DisplayIo, Frame, SerialSettings, Surface, TerminalInput } from '../../display/contract.ts';
import { openSerial } from '../../display/io/serial.ts';
import { openRenderer, type QrScanCheck, type Renderer, type RendererDeps } from '../../display/render.ts';
import { mayHoldQr, qrTextOf, type Scene } from '../../scene.ts';
import type { DisplayStatus } from '../contract.ts';
import { RefreshTimer } from './refresh.ts';

/** A display driver bound to its options. */
export interface ConfiguredDisplay {
  driver: string;
  open(io: DisplayIo, signal: AbortSignal): Promise<Display>;
}

export interface ScreenDeps {
  beforePainting?: RendererDeps['beforePainting'];
  clock: Clock;
  log: Logger;
  io: Omit<DisplayIo, 'requestDraw'>;
  /** Lays out scenes. All displays share the default. */
  openRenderer?: typeof openRenderer;
  /** Receives each scene that is on the screen, and each failure. */
  onOutcome(outcome: ScreenOutcome): void;
}

/** Resources that displays may use. */
export interface DisplayWorld {
  clock: Clock;
  log: Logger;
  /** The agent's terminal, if a terminal display may use it. */
  terminal: NodeJS.WriteStream | undefined;
  terminalInput: TerminalInput | undefined;
}

export function displayIo({ clock, log, terminal, terminalInput }: DisplayWorld) {
  const openPort = (settings: SerialSettings, signal: AbortSignal) => openSerial(settings, signal, clock);
  return { clock, log, terminal, terminalInput, openSerial: openPort };
}

/** A display goes blank when the agent ends, or leaves the last picture. It always removes a QR. */
export type OnStop = 'blank' | 'leave';

/** The result of a scene. `unreadable` says why the scene is shown without its QR. */
export type ScreenOutcome =
  | { ok: true; scene: Scene; unreadable?: string }
  | { ok: false; scene: Scene | undefined; reason: string };

/** A display that needs longer for one frame has failed. */
const DRAW_TIMEOUT_MS = 5_000;
/** A display that needs longer to open has failed. An LED matrix may need some seconds. */
const OPEN_TIMEOUT_MS = 15_000;
/** This part of the closing time is reserved for releasing the device, which removes a QR even if drawing fails. */
const RELEASE_MS = 500;
const BLANK: Scene = { kind: 'blank' };
const REOPEN_FIRST_MS = 500;
const REOPEN_MAX_MS = 30_000;
/** At most this many scenes wait for a slow display: only paid ones, so that people see a payment before the next scene. */
const WAITING_MAX = 8;

/**
 * Keeps one display running: opens it, draws on it, and reopens it with backoff after a failure. Only the newest scene
 * waits, so that a slow display cannot stall the box.
 */
export class Screen {
  readonly #configured: ConfiguredDisplay;
  readonly #deps: ScreenDeps;
  readonly #stop = new AbortController();
  /** Aborts when the time for closing is over. Opening and drawing that are still unfinished have failed then. */
  readonly #late = new AbortController();
  readonly #firstAttempt = Promise.withResolvers<void>();
  #running: Promise<void> = Promise.resolve();
  #wake: (() => void) | undefined;
  #onStop: OnStop = 'blank';
  /** The scene that is, or may be, on the display, even after a failure. */
  #onDisplay: Scene | undefined;
  #waiting: Scene[] = [];
  #latest: Scene | undefined;
  #renderer: Renderer | undefined;
  #frame: Frame | undefined;
  #qr: DisplayStatus['qr'] = null;
  #surface: Surface | undefined;
  #failure: string | undefined = 'not opened yet';

  constructor(configured: ConfiguredDisplay, deps: ScreenDeps) {
    this.#configured = configured;
    this.#deps = deps;
  }

  /** Starts opening the display. It settles after the first attempt, successful or not. */
  start(): Promise<void> {
    this.#running = this.#run();
    return this.#firstAttempt.promise;
  }

  present(scene: Scene): void {
    this.#latest = scene;
    if (this.#waiting.at(-1)?.kind !== 'paid' || this.#waiting.length >= WAITING_MAX) this.#waiting.pop();
    this.#waiting.push(scene);
    this.#wake?.();
  }

  /** Returns whether this display can show a QR; undefined while it is not open. */
  checkQr(qrCode: string): QrScanCheck | undefined {
    return this.#renderer?.checkQr(qrCode);
  }

  /** Returns the newest frame that the display has confirmed; undefined after a failure, as its content is unknown. */
  frame(): Frame | undefined {
    return this.#frame;
  }

  status(): DisplayStatus {
    return {
      driver: this.#configured.driver,
      ok: this.#failure === undefined,
      reason: this.#failure ?? null,
      surface: describe(this.#surface),
      qr: this.#qr,
    };
  }

  /**
   * Finishes the current drawing, blanks the display or leaves it, and releases the device within `withinMs`, unless
   * the device itself blocks. Reopens a failed display once to blank it. Never throws.
   */
  async close(onStop: OnStop, withinMs: number): Promise<void> {
    const { clock } = this.#deps;
    this.#onStop = onStop;
    this.#stop.abort();
    this.#wake?.();
    const ended = this.#running.then(() => true);
    if (await withDeadline(clock, withinMs - RELEASE_MS, ended)) return;
    this.#late.abort();
    await ended;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    let waitMs = REOPEN_FIRST_MS;
    while (!signal.aborted) {
      try {
        await this.#openAndDraw(signal, () => {
          waitMs = REOPEN_FIRST_MS;
        });
      } catch (error) {
        this.#fail(error);
        await this.#deps.clock.sleep(waitMs, signal);
        waitMs = Math.min(waitMs * 2, REOPEN_MAX_MS);
      }
    }
    if (this.#mustGo() && !this.#late.signal.aborted) await this.#blankAnew();
  }

  /** Returns whether the display may show something that must be removed. */
  #mustGo(): boolean {
    if (this.#onStop === 'leave') return mayHoldQr(this.#onDisplay);
    return this.#onDisplay !== undefined && this.#onDisplay.kind !== 'blank';
  }

  /** Tries once more to blank a failed display, because it may work again. */
  async #blankAnew(): Promise<void> {
    try {
      await this.#openAndDraw(this.#late.signal);
    } catch (error) {
      const { driver } = this.#configured;
      this.#deps.log.error('display-not-blanked', { driver, shows: this.#onDisplay?.kind, reason: reasonOf(error) });
    }
  }

  /** Opens the display and draws until the box ends, then draws the last picture. Aborting `opening` stops the opening. */
  async #openAndDraw(opening: AbortSignal, onDrawn?: () => void): Promise<void> {
    const { signal } = this.#stop;
    const { clock, io } = this.#deps;
    let mayHaveResized = false;
    const requestDraw = () => {
      mayHaveResized = true;
      if (this.#latest !== undefined) this.present(this.#latest);
    };
    const display = await this.#opened({ ...io, requestDraw }, opening);
    try {
      this.#renderer = await this.#rendererFor(display, opening);
      this.#firstAttempt.resolve();
      const upkeep = new RefreshTimer(display, clock);
      if (this.#latest !== undefined && this.#waiting.length === 0) this.#waiting.push(this.#latest);
      while (!signal.aborted) {
        if (upkeep.leftMs() === 0) await this.#expectInTime(upkeep.run(), 'tell what it shows');
        const scene = this.#waiting.shift();
        if (scene === undefined) {
          await this.#sceneWaits(upkeep.leftMs());
          continue;
        }
        while (mayHaveResized) {
          mayHaveResized = false;
          this.#renderer = await this.#rendererFor(display, opening);
        }
        upkeep.shows(await this.#draw(display, this.#renderer, scene), scene);
        onDrawn?.();
      }
      if (this.#onStop === 'blank' || mayHoldQr(this.#onDisplay)) await this.#take(display, this.#renderer, BLANK);
    } finally {
      await withDeadline(this.#deps.clock, DRAW_TIMEOUT_MS, display.close());
    }
  }

  /** Returns the opened display. It closes one that opens too late. */
  async #opened(io: DisplayIo, signal: AbortSignal): Promise<Display> {
    const opening = this.#configured.open(io, signal);
    const display = await this.#inTime(OPEN_TIMEOUT_MS, opening);
    if (display !== undefined) return display;
    void opening.then((late) => late.close()).catch(() => undefined);
    throw new PayboxError('DISPLAY_FAULT', 'the display did not open in time', {
      severity: 'retryable',
      fix: 'check its cable and power',
    });
  }

  async #rendererFor(display: Display, signal: AbortSignal): Promise<Renderer> {
    this.#surface = display.surface;
    const { openRenderer: open = openRenderer, beforePainting, io } = this.#deps;
    return open(display.surface, { cacheDir: io.cacheDir, signal, beforePainting });
  }

  async #draw(display: Display, renderer: Renderer, scene: Scene): Promise<Frame> {
    const frame = await this.#take(display, renderer, scene);
    if (this.#failure !== undefined) this.#deps.log.info('display-recovered', { driver: this.#configured.driver });
    this.#failure = undefined;
    this.#frame = frame;
    // The words beside an enrolment's QR contain the same code, so the QR may be missing.
    const qrCode = scene.kind === 'enrol' ? undefined : qrTextOf(scene);
    const qrCheck = qrCode === undefined ? undefined : renderer.checkQr(qrCode, 'sandbox' in scene);
    this.#qr = qrCheck?.ok ? drawnBy(qrCheck) : null;
    this.#deps.onOutcome({ ok: true, scene, ...(qrCheck?.ok === false ? { unreadable: qrCheck.reason } : {}) });
    return frame;
  }

  /** Draws a scene. Returns the frame that the display has accepted. */
  async #take(display: Display, renderer: Renderer, scene: Scene): Promise<Frame> {
    const frame = renderer.render(scene);
    if (!mayHoldQr(this.#onDisplay) && scene.kind !== 'blank') this.#onDisplay = scene;
    await this.#expectInTime(display.draw(frame, scene), 'take a frame');
    this.#onDisplay = scene;
    return frame;
  }

  /** Settles once `work` is done. Throws its error, or a PayboxError `DISPLAY_FAULT` on timeout. */
  async #expectInTime(work: Promise<void>, doing: string): Promise<void> {
    const done = work.then(() => true);
    if (await this.#inTime(DRAW_TIMEOUT_MS, done)) return;
    throw new PayboxError('DISPLAY_FAULT', `the display did not ${doing} in time`, {
      severity: 'retryable',
      fix: 'check its cable and power',
    });
  }

  /** Returns the result of `work`, or undefined after `ms` or once the time for closing is over. */
  async #inTime<T>(ms: number, work: Promise<T>): Promise<T | undefined> {
    const settled = new AbortController();
    const over = AbortSignal.any([settled.signal, this.#late.signal]);
    try {
      return await Promise.race([work, this.#deps.clock.sleep(ms, over).then(() => undefined)]);
    } finally {
      settled.abort('over');
    }
  }

  /** Settles when a scene waits, the box ends, or after `ms`. */
  async #sceneWaits(ms: number | undefined): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    await (ms === undefined ? promise : withDeadline(this.#deps.clock, ms, promise));
    this.#wake = undefined;
  }

  #fail(error: unknown): void {
    const fix = error instanceof PayboxError && error.fix !== '' ? `: ${error.fix}` : '';
    const reason = `${reasonOf(error)}${fix}`;
    if (this.#failure !== reason) {
      this.#deps.log.error('display-failed', { driver: this.#configured.driver, reason });
    }
    this.#failure = reason;
    this.#frame = undefined;
    this.#qr = null;
    this.#renderer = undefined;
    this.#waiting = [];
    this.#deps.onOutcome({ ok: false, scene: this.#latest, reason });
    this.#firstAttempt.resolve();
  }
}

function drawnBy({ ok: _, ...drawn }: Extract<QrScanCheck, { ok: true }>): DisplayStatus['qr'] {
  return drawn;
}

function describe(surface: Surface | undefined): string {
  if (surface?.kind === 'pixels') return `${surface.width}×${surface.height} pixels`;
  if (surface?.kind === 'characters') return `${surface.columns}×${surface.rows} characters`;
  return surface === undefined ? '' : 'smart panel';
}
