import type { CharacterSurface, PixelSurface, Surface } from '../contract.ts';
import { type Encoding, encodingOf, fitQr, type Qr, type QrFit, qrRoomIn } from '../qr.ts';
import { fitOnPanel } from './panel.ts';
import { isSmall } from './typography.ts';

/** The place of the QR: left of the texts, above or between them, or alone on the screen. */
export type Arrangement = 'beside' | 'stacked' | 'alone';

/** The largest share of the screen for the QR. The rest is for the texts of a payment. */
const BESIDE_SHARE = 0.63;
const STACKED_SHARE = 0.76;
/** If the words contain everything that the code does, they get as much room as the code. */
const WORDS_SHARE = 0.5;
const WORDS_ROWS_MIN = 8;
/** Narrower texts beside a QR are not readable. */
export const TEXT_COLUMNS_MIN = 16;
/** A mark of this height at the edge replaces a badge without room. */
export const EDGE_PX = 3;
/** Modules this large are easy to read, so texts need not shrink for larger ones. */
const EASY_MODULE_PIXELS = 3;

/** Fits the QR of `payload` on this surface, or gives the reason why it does not fit. */
export function fitOn(surface: Surface, payload: string): QrFit {
  if (surface.kind === 'panel') return fitOnPanel(surface, payload);
  return surface.kind === 'pixels' ? fitOnPixels(surface, encodingOf(payload)) : fitOnCharacters(surface, payload);
}

/**
 * Fits the QR of a scene whose words contain the same information, or returns the reason why there is no room beside
 * them.
 */
export function fitBesideWords(surface: Surface, payload: string): QrFit {
  if (surface.kind === 'panel') return fitOnPanel(surface, payload);
  const space = surface.kind === 'pixels' ? besideWords(surface) : besideLines(surface);
  return fitQr(payload, Math.max(0, space), surface.kind === 'pixels' ? 'H' : 'M');
}

/**
 * Returns a QR beside which a mark of `markPx` pixels, or of one row of characters, has room. It has fewer modules of
 * the same size. Returns `fit` if the mark has room already, or if only smaller modules would make room.
 */
export function besideMark(surface: Surface, payload: string, fit: QrFit, markPx: number): QrFit {
  if (!fit.ok || surface.kind === 'panel') return fit;
  const { width, height } = surface.kind === 'pixels' ? surface : { width: surface.columns, height: surface.rows * 2 };
  const isBesideText =
    surface.kind === 'pixels' ? arrangementOf(surface, fit.qr) !== 'alone' : width - fit.qr.side >= TEXT_COLUMNS_MIN;
  if (isBesideText || height - fit.qr.side >= markPx) return fit;
  const { modulePixels, quietModules, ecc } = fit.qr;
  const lower = fitQr(payload, Math.min(width, height - markPx), ecc);
  const isAsLarge = lower.ok && lower.qr.modulePixels === modulePixels && lower.qr.quietModules === quietModules;
  return isAsLarge ? lower : fit;
}

/** Returns the arrangement that `fitOn` chose for this code. */
export function arrangementOf(surface: PixelSurface, qr: Qr): Arrangement {
  if (qr.side > besideTexts(surface)) return 'alone';
  return isWide(surface) ? 'beside' : 'stacked';
}

function fitOnPixels(surface: PixelSurface, payload: Encoding): QrFit {
  const shared = besideTexts(surface);
  const whole = Math.min(surface.width, surface.height);
  const besideRoom = qrRoomIn(payload, shared);
  if (besideRoom === undefined) return fitQr(payload, whole);
  const { modulePixels, quietModules } = besideRoom;
  if (modulePixels >= EASY_MODULE_PIXELS) return fitQr(payload, shared);
  const alone = qrRoomIn(payload, whole) ?? besideRoom;
  // With modules of one pixel, a narrow margin is the first reason why decoders fail.
  const costsQuiet = modulePixels === 1 && alone.quietModules > quietModules;
  return fitQr(payload, alone.modulePixels > modulePixels || costsQuiet ? whole : shared);
}

function besideTexts({ width, height }: PixelSurface): number {
  return isWide({ width, height })
    ? Math.min(height, Math.floor(width * BESIDE_SHARE))
    : Math.min(width, Math.floor(height * STACKED_SHARE));
}

/** Returns the space beside words. Small panels have no room for code and words. */
function besideWords(surface: PixelSurface): number {
  if (isSmall(surface)) return 0;
  const { width, height } = surface;
  return isWide(surface) ? Math.min(height, width * WORDS_SHARE) : Math.min(width, height * WORDS_SHARE);
}

function besideLines({ columns, rows, halfBlocks }: CharacterSurface): number {
  if (!halfBlocks) return 0;
  return Math.max(Math.min(columns - TEXT_COLUMNS_MIN, rows * 2), Math.min(columns, (rows - WORDS_ROWS_MIN) * 2));
}

function isWide({ width, height }: { width: number; height: number }): boolean {
  return width >= height * 1.2;
}

/**
 * Fits a QR on a page of characters. A module is one column wide and half a row high. Modules cannot grow, so a
 * stronger code would only take room from the texts: M is the strongest.
 */
function fitOnCharacters({ columns, rows, halfBlocks }: CharacterSurface, payload: string): QrFit {
  if (!halfBlocks) return { ok: false, reason: 'this display has characters only, no pixels for a QR code' };
  return fitQr(payload, Math.min(columns, rows * 2), 'M');
}
