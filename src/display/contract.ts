import type { z } from 'zod';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/log.ts';
import type { Scene } from '../scene.ts';

/** A screen made of pixels. */
export interface PixelSurface {
  kind: 'pixels';
  width: number;
  height: number;
}

/** A screen made of character cells. `halfBlocks`: `▀` and colours work, so that a cell shows two square modules. */
export interface CharacterSurface {
  kind: 'characters';
  columns: number;
  rows: number;
  halfBlocks: boolean;
}

/** A panel that draws texts and a QR string by itself: it is told what to show, not how. */
export interface PanelSurface {
  kind: 'panel';
  /** How the panel draws its QR; null without a QR component. */
  qr: PanelQr | null;
  /** Whether its fonts have Vietnamese letters; otherwise diacritics are stripped. */
  accents: boolean;
}

export interface PanelQr {
  /** The square that it draws in. */
  sidePixels: number;
  /** The longest string that it takes, in bytes. */
  charsMax: number;
  /** The largest module that it draws, in pixels, whatever room there is. */
  modulePixelsMax?: number;
  /** Where it does not draw the smallest code: modules on a side of what it draws of so many bytes, margin beyond the square. */
  modulesFor?(bytes: number): number;
}

export type Surface = PixelSurface | CharacterSurface | PanelSurface;

/** A finished picture. `data` holds 4 bytes a pixel (red, green, blue, 255), rows from the top, no padding. */
export interface PixelFrame {
  kind: 'pixels';
  width: number;
  height: number;
  data: Uint8Array;
}

/** The character of a cell that shows two square modules: the upper in the colour of its ink, the lower in its paper's. */
export const UPPER_HALF = '▀';

/** A finished page of text. It may have fewer rows than its surface: the rest is not used. */
export interface CharacterFrame {
  kind: 'characters';
  columns: number;
  rows: number;
  /** The cells row by row. */
  cells: readonly Cell[];
}

/** One character, of width 1, and its colours as 0xRRGGBB. */
export interface Cell {
  char: string;
  ink: number;
  paper: number;
}

/** The contents of a smart panel. Texts are cleaned of control characters; empty ones are to be hidden or cleared. */
export interface PanelFrame {
  kind: 'panel';
  screen: Scene['kind'];
  title: string;
  /** As `50.000 ₫`, or `50.000 d` without accents. */
  amount: string;
  /** The content of an order, or what else matters: a code to enrol with, the codes of the box, what is wrong with it. */
  content: string;
  holder: string;
  account: string;
  timeLeft: string;
  hint: string;
  /** The problem of the connection: there is none, or it is not encrypted. */
  offline: string;
  /** The payload to draw, null on every screen without a QR. */
  qrCode: string | null;
}

export type Frame = PixelFrame | CharacterFrame | PanelFrame;

/** No longer than this does `close` wait for a device that may hang: a box that ends has little time. */
export const GOODBYE_TIMEOUT_MS = 300;

/** How what was drawn is kept on the screen of a device that may lose its power while its port stays open. */
export interface Refresh {
  /** How often it is due, in milliseconds. */
  everyMs: number;
  /**
   * Settles once `frame`, which was drawn last, is on the screen as far as the device tells: it is asked, or drawn on
   * again. Throws as `draw` does. Whoever calls it draws nothing meanwhile.
   */
  run(frame: Frame, scene: Scene): Promise<void>;
}

/** An open screen: opening makes one, closing spends it; there is no reopen. */
export interface Display {
  /** The surface to draw on now; it may change with `requestDraw`. */
  readonly surface: Surface;
  /** Settles once the frame is on the screen; throws a PayboxError when the screen failed. */
  draw(frame: Frame, scene: Scene): Promise<void>;
  /** Undefined where a device cannot lose what was drawn without losing its port, or drawing it again would do harm. */
  readonly refresh?: Refresh | undefined;
  /**
   * Gives the device back; a second call does nothing. After it, `draw` throws. What was drawn last stays where the
   * device can keep it, but never a QR: nobody may pay by it when nobody listens. Whoever wants nothing to stay draws a
   * blank scene first.
   */
  close(): Promise<void>;
}

/** How a serial port is opened; 8 data bits, no parity, one stop bit, no flow control unless told otherwise. */
export interface SerialSettings {
  path: string;
  baudRate: number;
  rtscts?: boolean;
}

/** One open serial port, spent when it is lost. */
export interface SerialLine {
  /**
   * Settles once the bytes have left for the device. Throws a PayboxError `DISPLAY_FAULT` when they have not within
   * `timeoutMs` (a stuck peer) or the port is lost.
   */
  write(bytes: Uint8Array, timeoutMs: number): Promise<void>;
  /** Bytes as they arrive, in any portions, until the returned function is called. */
  onData(listener: (bytes: Uint8Array) => void): () => void;
  /** Settles, with the reason, when the port is lost or closed. */
  readonly lost: Promise<string>;
  /** Safe to call twice. */
  close(): Promise<void>;
}

/** The input of a terminal, read by one owner for all. */
export interface TerminalInput {
  /** Calls back with the bytes as they come, until the returned function is called. They are not to be kept. */
  onData(listener: (bytes: Uint8Array) => void): () => void;
}

/** Everything with which a driver touches devices and time. */
export interface DisplayIo {
  clock: Clock;
  log: Logger;
  /** The terminal that the agent runs in, if any. */
  terminal: NodeJS.WriteStream | undefined;
  /** The terminal's input: keys, and replies to queries. Where it is undefined, drivers must not query the terminal. */
  terminalInput: TerminalInput | undefined;
  /** Opens a serial port. Throws a PayboxError that names the port and what to do: absent, busy, not permitted. */
  openSerial(settings: SerialSettings, signal: AbortSignal): Promise<SerialLine>;
  /** A folder of the agent's for files that may be made anew. */
  cacheDir: string;
  /**
   * Has the agent lay the scene out anew and draw it: because the surface changed its size, or because the device was
   * found lost while nothing was drawn, which `draw` then throws.
   */
  requestDraw(): void;
}

/**
 * One kind of screen. `options` decodes the driver's part of the configuration, `example` is a valid one.
 * `open` throws a PayboxError that says what is missing and what to do.
 */
export interface DisplayDriver<Options> {
  readonly name: string;
  readonly summary: string;
  readonly options: z.ZodType<Options>;
  readonly example: Options;
  open(options: Options, io: DisplayIo, signal: AbortSignal): Promise<Display>;
}
