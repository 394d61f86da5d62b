import type { CharacterSurface, PixelSurface, Surface } from '../contract.ts';
import { type Encoding, encodingOf, fitQr, type Qr, type QrFit, qrRoomIn } from '../qr.ts';
import { fitOnPanel } from './panel.ts';
import { isSmall } from './typography.ts';

/** Where the QR stands: left of the texts, above or between them, or with the whole screen to itself. */
export type Arrangement = 'beside' | 'stacked' | 'alone';

/** The share of the screen that is kept for the texts of a payment. */
const BESIDE_SHARE = 0.63;
const STACKED_SHARE = 0.76;
/** Where the words say all that the code says, they have as much as the code. */
const WORDS_SHARE = 0.5;
const WORDS_ROWS_MIN = 8;
/** Narrower than this beside a QR, texts are not worth reading. */
export const TEXT_COLUMNS_MIN = 16;
/** The mark at the edge that stands for a badge, where words have no room. */
export const EDGE_PX = 3;
/** Modules of this many pixels are read easily: the texts do not have to give way to larger ones. */
const EASY_MODULE_PIXELS = 3;

/** The QR of `payload` as this surface can show it, or why it cannot. */
export function fitOn(surface: Surface, payload: string): QrFit {
  if (surface.kind === 'panel') return fitOnPanel(surface, payload);
  return surface.kind === 'pixels' ? fitOnPixels(surface, encodingOf(payload)) : fitOnCharacters(surface, payload);
}

/** The QR of a scene that tells the same in words, or that there is no room for it beside them. */
export function fitBesideWords(surface: Surface, payload: string): QrFit {
  if (surface.kind === 'panel') return fitOnPanel(surface, payload);
  const space = surface.kind === 'pixels' ? besideWords(surface) : besideLines(surface);
  return fitQr(payload, Math.max(0, space), surface.kind === 'pixels' ? 'H' : 'M');
}

/** The arrangement that `fitOn` chose for this code. */
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
  // Decoders lose a code of single pixels in a narrow margin first.
  const costsQuiet = modulePixels === 1 && alone.quietModules > quietModules;
  return fitQr(payload, alone.modulePixels > modulePixels || costsQuiet ? whole : shared);
}

function besideTexts({ width, height }: PixelSurface): number {
  return isWide({ width, height })
    ? Math.min(height, Math.floor(width * BESIDE_SHARE))
    : Math.min(width, Math.floor(height * STACKED_SHARE));
}

/** Small panels have no room for both. */
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
 * A module is one column wide and half a row high. Modules cannot grow here, so that a stronger code would only take
 * room from the texts: M is the strongest.
 */
function fitOnCharacters({ columns, rows, halfBlocks }: CharacterSurface, payload: string): QrFit {
  if (!halfBlocks) return { ok: false, reason: 'this display has characters only, no pixels for a QR code' };
  return fitQr(payload, Math.min(columns, rows * 2), 'M');
}
