import type { QRCode, QRCodeSegment } from 'qrcode';
import { create } from 'qrcode/lib/core/qrcode.js';

/** The white margin in modules: the standard's, and the smallest that phones can read. */
export const QUIET_MODULES = 4;
export const QUIET_MODULES_MIN = 2;

/** The encoder uses any mask if the caller needs only the size of a code. So it skips the search for the best mask. */
const ANY_MASK = 0;

const LEVELS = ['H', 'Q', 'M', 'L'] as const;
export type EccLevel = (typeof LEVELS)[number];

/** A QR to draw, always with dark modules on a light ground. */
export interface Qr {
  version: number;
  ecc: EccLevel;
  /** The modules per side, without the quiet zone. */
  modules: number;
  /** The pixels per side of a module. */
  modulePixels: number;
  quietModules: number;
  /** The pixels per side, with the quiet zone. */
  side: number;
  /** One byte per module, row by row; 1 is dark. */
  dark: Uint8Array;
}

/**
 * The QR, or why it does not fit. `sideMin` has the pixels per side with which it would fit, if there is such a size.
 */
export type QrFit = { ok: true; qr: Qr } | { ok: false; reason: string; sideMin?: number };

/** A payload in segments, which is most of the work of encoding, and its version at each level of error correction. */
export interface Encoding {
  payload: string;
  versionAt(level: EccLevel): number | undefined;
  create(level: EccLevel): QRCode;
}

export function encodingOf(payload: string): Encoding {
  const least = tried(() => create(payload, { errorCorrectionLevel: 'L', maskPattern: ANY_MASK }));
  // The encoder accepts its own segments, although its declarations require the names of their modes.
  const segments = (least?.segments ?? []) as unknown as QRCodeSegment[];
  const versions = new Map<EccLevel, number | undefined>([['L', least?.version]]);
  return {
    payload,
    versionAt: (level) => {
      if (least !== undefined && !versions.has(level)) {
        const made = tried(() => create(segments, { errorCorrectionLevel: level, maskPattern: ANY_MASK }));
        versions.set(level, made?.version);
      }
      return versions.get(level);
    },
    create: (level) => create(segments, { errorCorrectionLevel: level }),
  };
}

/**
 * Fits the QR of `payload` into a square of `space` pixels. It has the largest whole module size and a quiet zone of 4
 * modules: fewer, at least 2, only if 4 do not fit or would reduce modules from 2 pixels to 1, which cameras read
 * worse. The error correction is the strongest, up to `strongest`, that reduces neither. Modules of 1 pixel are
 * allowed: their real size depends on the panel.
 */
export function fitQr(payload: string | Encoding, space: number, strongest: EccLevel = 'H'): QrFit {
  const encoding = typeof payload === 'string' ? encodingOf(payload) : payload;
  const least = encoding.versionAt('L');
  if (least === undefined) {
    return { ok: false, reason: `${encoding.payload.length} characters are more than any QR code holds` };
  }
  const modules = modulesOf(least);
  const room = roomFor(modules, space);
  if (room === undefined) {
    const sideMin = modules + 2 * QUIET_MODULES_MIN;
    return {
      ok: false,
      sideMin,
      reason:
        `the QR code has ${modules} x ${modules} modules and needs ${sideMin} x ${sideMin} pixels with a quiet zone of ` +
        `${QUIET_MODULES_MIN}; this display gives it ${space} x ${space}`,
    };
  }
  const modulesMax = Math.floor(space / room.modulePixels) - 2 * room.quietModules;
  const ecc = LEVELS.slice(LEVELS.indexOf(strongest)).find((level) => {
    const version = encoding.versionAt(level);
    return version !== undefined && modulesOf(version) <= modulesMax;
  });
  const made = encoding.create(ecc ?? 'L');
  const { size } = made.modules;
  return {
    ok: true,
    qr: {
      version: made.version,
      ecc: ecc ?? 'L',
      modules: size,
      ...room,
      side: (size + 2 * room.quietModules) * room.modulePixels,
      dark: made.modules.data,
    },
  };
}

/** The pixels per side of a module, and the modules of the quiet zone. */
export interface QrRoom {
  modulePixels: number;
  quietModules: number;
}

/** Returns the size of the QR of `payload` in a square of `space` pixels; undefined if it does not fit. */
export function qrRoomIn(payload: string | Encoding, space: number): QrRoom | undefined {
  const encoding = typeof payload === 'string' ? encodingOf(payload) : payload;
  const version = encoding.versionAt('L');
  return version === undefined ? undefined : roomFor(modulesOf(version), space);
}

function roomFor(modules: number, space: number): QrRoom | undefined {
  const rooms = [];
  for (let quietModules = QUIET_MODULES; quietModules >= QUIET_MODULES_MIN; quietModules -= 1) {
    rooms.push({ modulePixels: Math.floor(space / (modules + 2 * quietModules)), quietModules });
  }
  return rooms.find(({ modulePixels }) => modulePixels >= 2) ?? rooms.find(({ modulePixels }) => modulePixels >= 1);
}

function modulesOf(version: number): number {
  return 17 + 4 * version;
}

function tried<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}
