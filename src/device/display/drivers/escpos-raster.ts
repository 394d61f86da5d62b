import { type EccLevel, fitQr, type Qr } from '../qr.ts';

const ESC = 0x1b;
const GS = 0x1d;
const LF = 0x0a;
/** A dot of the data is two dots wide and two high. */
const DOUBLED = 3;
/**
 * One command has this many lines. A weak supply prints long black areas speckled, and a half sent command stays short.
 */
const STRIPE_LINES = 64;
/** The lines of one `ESC *`, and its densities: 24 dots high, columns as wide as two dots or as one. */
const COLUMN_LINES = 24;
const [SINGLE_DENSITY, DOUBLE_DENSITY] = [32, 33];
/** A line feed of this size moves the paper by exactly one stripe of 24 dots. */
const TIGHT_LINES = [ESC, 0x33, 16];
const USUAL_LINES = [ESC, 0x32];
/** A picture is sent in this many of the 5 seconds that a push has. */
const SEND_SECONDS = 3;
const BITS_OF_BYTE = 10;
/** No phone reads smaller modules on thermal paper reliably. */
const MODULE_DOTS_MIN = 3;
const STRONGEST: EccLevel = 'M';

/** Commands for a picture. Nearly every printer understands `gs-v-0`; the oldest ones need `esc-star`. */
export const RASTER_COMMANDS = ['gs-v-0', 'esc-star'] as const;

/** The properties of a medium that gets a QR as a picture. */
export interface RasterMedium {
  /** The width in dots. */
  dots: number;
  moduleDotsMax: number;
  command: (typeof RASTER_COMMANDS)[number];
  baudRate: number;
}

/** Returns the length of the longest command that a picture of this width has. */
export function longestCommand(dots: number): number {
  return 8 + Math.max(Math.ceil(dots / 8) * STRIPE_LINES, dots * 3);
}

/**
 * Returns the commands that print a QR as a picture, for a printer that makes no QR itself; none if it does not fit. The blank
 * paper at the sides of the picture is the quiet zone.
 */
export function rasterQr(payload: string, medium: RasterMedium): number[] {
  const fit = fitQr(payload, medium.dots, STRONGEST);
  if (!fit.ok) return [];
  const moduleDots = moduleDotsFor(fit.qr, medium);
  return medium.command === 'gs-v-0' ? rasterOf(fit.qr, moduleDots) : columnsOf(fit.qr, moduleDots);
}

/**
 * Returns the largest module that fits and is sent in time. The driver prefers an even one, which it sends at half its
 * size for the printer to double.
 */
function moduleDotsFor({ modules, modulePixels }: Qr, { moduleDotsMax, command, baudRate }: RasterMedium): number {
  const bytesMax = (baudRate / BITS_OF_BYTE) * SEND_SECONDS;
  const largest = Math.min(modulePixels, moduleDotsMax);
  const sizes = Array.from({ length: Math.max(0, largest - MODULE_DOTS_MIN + 1) }, (_, index) => largest - index);
  const isSent = (moduleDots: number) => {
    const side = modules * moduleDots;
    const across = moduleDots % 2 === 0 ? side / 2 : side;
    const down = command === 'esc-star' ? side : across;
    return (across * down) / 8 <= bytesMax;
  };
  const even = sizes.find((it) => it % 2 === 0 && isSent(it));
  const any = sizes.find(isSent);
  if (even !== undefined && (any ?? 0) - even <= 1) return even;
  return any ?? Math.min(largest, MODULE_DOTS_MIN);
}

function rasterOf(qr: Qr, moduleDots: number): number[] {
  const isDoubled = moduleDots % 2 === 0;
  const step = isDoubled ? moduleDots / 2 : moduleDots;
  const side = qr.modules * step;
  const width = Math.ceil(side / 8);
  const bytes: number[] = [];
  for (let top = 0; top < side; top += STRIPE_LINES) {
    const lines = Math.min(STRIPE_LINES, side - top);
    bytes.push(GS, 0x76, 0x30, isDoubled ? DOUBLED : 0, width & 0xff, width >> 8, lines & 0xff, lines >> 8);
    for (let y = top; y < top + lines; y += 1) {
      for (let x = 0; x < width * 8; x += 8) bytes.push(byteOf((bit) => isDark(qr, x + bit, y, step)));
    }
  }
  return bytes;
}

function columnsOf(qr: Qr, moduleDots: number): number[] {
  const isWide = moduleDots % 2 === 0;
  const stepX = isWide ? moduleDots / 2 : moduleDots;
  const [across, down] = [qr.modules * stepX, qr.modules * moduleDots];
  const density = isWide ? SINGLE_DENSITY : DOUBLE_DENSITY;
  const bytes = [...TIGHT_LINES];
  for (let top = 0; top < down; top += COLUMN_LINES) {
    bytes.push(ESC, 0x2a, density, across & 0xff, across >> 8);
    for (let x = 0; x < across; x += 1) {
      for (let y = top; y < top + COLUMN_LINES; y += 8) {
        bytes.push(byteOf((bit) => isDark(qr, x, y + bit, stepX, moduleDots)));
      }
    }
    bytes.push(LF);
  }
  return [...bytes, ...USUAL_LINES];
}

/** Returns a byte of eight dots, the first in the highest bit. */
function byteOf(isSet: (bit: number) => boolean): number {
  let byte = 0;
  for (let bit = 0; bit < 8; bit += 1) if (isSet(bit)) byte |= 0x80 >> bit;
  return byte;
}

function isDark({ modules, dark }: Qr, x: number, y: number, stepX: number, stepY = stepX): boolean {
  const [column, row] = [Math.floor(x / stepX), Math.floor(y / stepY)];
  return column < modules && row < modules && dark[row * modules + column] === 1;
}
