import type { z } from 'zod';
import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../lib/log.ts';
import type { Scene } from '../scene.ts';

/** Describes a screen made of pixels. */
export interface PixelSurface {
  kind: 'pixels';
  width: number;
  height: number;
}

/**
 * A screen of character cells. With `halfBlocks` it has `▀` and colours, so that a cell can show two square modules.
 */
export interface CharacterSurface {
  kind: 'characters';
  columns: number;
  rows: number;
  halfBlocks: boolean;
}

/** A smart panel, which draws texts and a QR from a string by itself. */
export interface PanelSurface {
  kind: 'panel';
  /** The panel's way to draw a QR; null without a QR component. */
  qr: PanelQr | null;
  /** True if its fonts have Vietnamese letters; otherwise diacritics are stripped. */
  accents: boolean;
}

export interface PanelQr {
  /** The side of its QR square. */
  sidePixels: number;
  /** The longest payload, in bytes. */
  charsMax: number;
  /** The largest module, in pixels. */
  modulePixelsMax?: number;
  /**
   * The modules per side for this many bytes, for a panel that chooses the size of the code. They exclude the margin,
   * which is outside the square.
   */
  modulesFor?(bytes: number): number;
}

export type Surface = PixelSurface | CharacterSurface | PanelSurface;

/** A picture. `data` has 4 bytes per pixel (red, green, blue, 255), row by row from the top, without padding. */
export interface PixelFrame {
  kind: 'pixels';
  width: number;
  height: number;
  readonly data: Uint8Array;
}

/** Shows two square modules in a cell: the upper one in the ink colour, the lower one in the paper colour. */
export const UPPER_HALF = '▀';

/** A page of text. It may have fewer rows than its surface. */
export interface CharacterFrame {
  kind: 'characters';
  columns: number;
  rows: number;
  /** The cells, row by row. */
  cells: readonly Cell[];
}

/** A character of width 1, with colours 0xRRGGBB. */
export interface Cell {
  char: string;
  ink: number;
  paper: number;
}

/** The contents of a smart panel. Texts have no control characters. The panel must hide or clear empty ones. */
export interface PanelFrame {
  kind: 'panel';
  screen: Scene['kind'];
  title: string;
  /** The amount, for example `50.000 ₫`, or `50.000 d` without accents. */
  amount: string;
  /** The content of an order, or other important text: an enrolment code, the codes of the box, its problem. */
  content: string;
  holder: string;
  account: string;
  timeLeft: string;
  /** The amount that is missing or too much, or the next step. */
  hint: string;
  /** The problem of the connection: it is missing, or not encrypted. */
  offline: string;
  /** `SANDBOX` if payments are no money. The title begins with it too. */
  mark: string;
  /** The payload to draw; null on every screen without a QR. */
  qrCode: string | null;
}

export type Frame = PixelFrame | CharacterFrame | PanelFrame;

/** `close` waits at most this long for a device that may hang: a box that is ending has little time. */
export const GOODBYE_TIMEOUT_MS = 300;

/** Checks or repeats the picture on a device that can lose its power while its port stays open. */
export interface Refresh {
  /** The interval in milliseconds. */
  everyMs: number;
  /**
   * Settles once the last frame is on the screen, as far as the device reports it. The driver asks the device or draws
   * again. Throws as `draw` does. The caller must draw nothing meanwhile.
   */
  run(frame: Frame, scene: Scene): Promise<void>;
}

/** An open screen. After `close` it cannot be used again. */
export interface Display {
  /** The current surface. When it changes, the display calls `requestDraw`. */
  readonly surface: Surface;
  /** Settles once the frame is on the screen. Throws a PayboxError when the screen fails. */
  draw(frame: Frame, scene: Scene): Promise<void>;
  /**
   * The refresh; undefined if the device cannot lose the picture without losing its port, or if drawing again would do
   * harm.
   */
  readonly refresh?: Refresh | undefined;
  /**
   * Closes the device. A second call does nothing, and `draw` throws afterwards. The last picture stays if the device
   * can hold it, but never a QR, because nobody may pay while no program runs. For an empty screen, the caller draws a
   * blank scene first.
   */
  close(): Promise<void>;
}

/** The settings of a serial port; by default 8 data bits, no parity, one stop bit, no flow control. */
export interface SerialSettings {
  path: string;
  baudRate: number;
  rtscts?: boolean;
}

/** An open serial port. After a loss it cannot be used again. */
export interface SerialLine {
  /**
   * Settles once the bytes were sent to the device. Throws a PayboxError `DISPLAY_FAULT` when sending takes longer than
   * `timeoutMs` (a stuck peer) or the port is lost.
   */
  write(bytes: Uint8Array, timeoutMs: number): Promise<void>;
  /** Calls `listener` with bytes as they arrive, in any portions, until the returned function is called. */
  onData(listener: (bytes: Uint8Array) => void): () => void;
  /** Settles with the reason when the port is lost or closed. */
  readonly lost: Promise<string>;
  /** Closes the line. Safe to call twice. */
  close(): Promise<void>;
}

/** The input of a terminal. It has one reader, which passes it on. */
export interface TerminalInput {
  /**
   * Calls `listener` with bytes as they arrive, until the returned function is called. The listener must not keep the
   * array.
   */
  onData(listener: (bytes: Uint8Array) => void): () => void;
}

/** Gives a driver access to devices and time. */
export interface DisplayIo {
  clock: Clock;
  log: Logger;
  /** The terminal that the agent runs in, if any. */
  terminal: NodeJS.WriteStream | undefined;
  /** The input of the terminal: keys, and replies to queries. Without it, drivers must not query the terminal. */
  terminalInput: TerminalInput | undefined;
  /** Opens a serial port. Throws a PayboxError that names the port and the fix: absent, busy, not permitted. */
  openSerial(settings: SerialSettings, signal: AbortSignal): Promise<SerialLine>;
  /** A folder of the agent for files that can be made again. */
  cacheDir: string;
  /**
   * Makes the agent lay out and draw the scene again, because the surface has changed its size, or the device was lost
   * while nobody drew. In the second case `draw` throws the failure.
   */
  requestDraw(): void;
}

/**
 * A kind of screen. `options` decodes the driver's part of the configuration, and `example` is a valid one. `open`
 * throws a PayboxError that says what is missing and what to do.
 */
export interface DisplayDriver<Options> {
  readonly name: string;
  readonly summary: string;
  /** True if the kernel or the pins of a Linux machine draw. Other displays need a serial port or nothing. */
  readonly needsLinux?: boolean;
  readonly options: z.ZodType<Options>;
  readonly example: Options;
  open(options: Options, io: DisplayIo, signal: AbortSignal): Promise<Display>;
}
