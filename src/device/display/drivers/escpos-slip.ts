import { create } from 'qrcode/lib/core/qrcode.js';
import type { PanelFrame } from '../contract.ts';
import { wrap } from '../layout/wrap.ts';
import { type EccLevel, fitQr, QUIET_MODULES_MIN } from '../qr.ts';
import { type RasterMedium, rasterQr } from './escpos-raster.ts';

const ESC = 0x1b;
const GS = 0x1d;
const LF = 0x0a;
/** The dots per character of font A. Double size has twice as many. */
const CHAR_DOTS = 12;
const TEXT_LINES_MAX = 4;
const FEED_LINES = 4;

const INITIALISE = [ESC, 0x40];
const CENTRED = [ESC, 0x61, 1];
const DOUBLE = [GS, 0x21, 0x11];
const NORMAL = [GS, 0x21, 0];
/** The printer feeds to the knife and cuts except for a corner, so that the slip does not fall. */
const CUT = [GS, 0x56, 66, 0];
const FEED = [ESC, 0x64, FEED_LINES];
const CLEAR_SCREEN = [0x0c];
const ECC_CODES: Readonly<Record<EccLevel, number>> = { L: 0x30, M: 0x31, Q: 0x32, H: 0x33 };
const STRONGEST_FIRST: readonly EccLevel[] = ['H', 'Q', 'M', 'L'];

/** Properties of the paper or screen. */
export interface Medium {
  /** The width in dots. */
  dots: number;
  /** The largest side of a QR module in dots. */
  moduleDotsMax: number;
  /** True if there is a knife; undefined for a screen. */
  cut: boolean | undefined;
  /** The way to send a picture of the QR; undefined for a device that makes it itself. */
  raster: Pick<RasterMedium, 'command' | 'baudRate'> | undefined;
}

/** Returns a slip or screen with the whole frame except the time left, because paper cannot count. */
export function slipOf(frame: PanelFrame, medium: Medium): Uint8Array {
  const { title, amount, content, holder, account, hint, offline, qrCode } = frame;
  const screen = medium.cut === undefined;
  const bytes = [...INITIALISE, ...(screen ? CLEAR_SCREEN : []), ...CENTRED];
  const say = (text: string) => bytes.push(...linesOf(text, medium.dots));
  say(title);
  bytes.push(...amountOf(amount, medium.dots));
  say(content);
  if (qrCode !== null) bytes.push(...qrOf(qrCode, medium), LF);
  for (const text of [holder, account, hint]) say(text);
  if (screen) say(offline);
  else bytes.push(...(medium.cut ? CUT : FEED));
  return Uint8Array.from(bytes);
}

/** Returns the amount, in double size if it fits, because it must not be broken. */
function amountOf(amount: string, dots: number): number[] {
  if (amount === '') return [];
  const doubled = amount.length * CHAR_DOTS * 2 <= dots;
  const line = [...textOf(amount), LF];
  return doubled ? [...DOUBLE, ...line, ...NORMAL] : line;
}

function linesOf(text: string, dots: number): number[] {
  const { lines } = wrap(text, Math.floor(dots / CHAR_DOTS), TEXT_LINES_MAX, (part) => part.length);
  return lines.flatMap((line) => [...textOf(line.replaceAll('…', '~')), LF]);
}

/** Returns printable ASCII, equal in every code page. Other characters become `?`, so that no text can be a command. */
function textOf(text: string): Buffer {
  return Buffer.from(text.replaceAll(/[^ -~]/gu, '?'), 'latin1');
}

function qrOf(payload: string, medium: Medium): number[] {
  return medium.raster === undefined ? nativeQr(payload, medium) : rasterQr(payload, { ...medium, ...medium.raster });
}

/** Returns GS ( k: model, module size, error correction, data, print (functions 165, 167, 169, 180, 181). */
function nativeQr(payload: string, medium: Medium): number[] {
  const data = Buffer.from(payload, 'utf8');
  const { moduleDots, ecc } = qrSizeFor(payload, medium);
  const stored = data.length + 3;
  return [
    ...[GS, 0x28, 0x6b, 4, 0, 0x31, 0x41, 0x32, 0],
    ...[GS, 0x28, 0x6b, 3, 0, 0x31, 0x43, moduleDots],
    ...[GS, 0x28, 0x6b, 3, 0, 0x31, 0x45, ECC_CODES[ecc]],
    ...[GS, 0x28, 0x6b, stored & 0xff, stored >> 8, 0x31, 0x50, 0x30, ...data],
    ...[GS, 0x28, 0x6b, 3, 0, 0x31, 0x51, 0x30],
  ];
}

/**
 * Returns module size and error correction of a code that fits on the medium. The size is that of `fitQr`, with the
 * strongest error correction that still fits. Devices do not print a code that is too wide. Some use a single byte
 * segment, which needs a larger version and so smaller modules.
 */
function qrSizeFor(payload: string, { dots, moduleDotsMax }: Medium): { moduleDots: number; ecc: EccLevel } {
  const fit = fitQr(payload, dots, 'L');
  const wanted = fit.ok ? Math.min(fit.qr.modulePixels, moduleDotsMax) : 1;
  for (let moduleDots = wanted; moduleDots > 1; moduleDots -= 1) {
    const ecc = STRONGEST_FIRST.find((level) => (modulesInBytes(payload, level) ?? Infinity) * moduleDots <= dots);
    if (ecc !== undefined) return { moduleDots, ecc };
  }
  return { moduleDots: 1, ecc: 'L' };
}

/**
 * Returns the modules per side with the quiet zone, in one byte segment; undefined if the payload is too long for any
 * QR.
 */
function modulesInBytes(payload: string, errorCorrectionLevel: EccLevel): number | undefined {
  try {
    const segments = [{ data: Buffer.from(payload, 'utf8'), mode: 'byte' as const }];
    return create(segments, { errorCorrectionLevel, maskPattern: 0 }).modules.size + 2 * QUIET_MODULES_MIN;
  } catch {
    return undefined;
  }
}
