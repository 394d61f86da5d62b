import QRCode from 'qrcode';

/** The white margin that the standard asks for, in modules, and the least that phones still read. */
export const QUIET_MODULES = 4;
export const QUIET_MODULES_MIN = 2;

/** Whichever: where only the size of a code is asked for, the search for the best mask is spared. */
const ANY_MASK = 0;

const LEVELS = ['H', 'Q', 'M', 'L'] as const;
export type EccLevel = (typeof LEVELS)[number];

/** A QR as it will be drawn: always dark modules on a light ground. */
export interface Qr {
  version: number;
  ecc: EccLevel;
  /** Modules on a side, without the quiet zone. */
  modules: number;
  /** Pixels on a side of one module. */
  modulePixels: number;
  quietModules: number;
  /** Pixels on a side, quiet zone included. */
  side: number;
  /** One byte a module, row by row; 1 is dark. */
  dark: Uint8Array;
}

/** `sideMin`: the pixels on a side with which it would fit, where there is such a size. */
export type QrFit = { ok: true; qr: Qr } | { ok: false; reason: string; sideMin?: number };

/** A payload that has been cut into segments, which is most of the work, and the version that it takes at each level. */
export interface Encoding {
  payload: string;
  versionAt(level: EccLevel): number | undefined;
  create(level: EccLevel): QRCode.QRCode;
}

export function encodingOf(payload: string): Encoding {
  const least = tried(() => QRCode.create(payload, { errorCorrectionLevel: 'L', maskPattern: ANY_MASK }));
  // The encoder takes its own segments back, though its declarations ask for the names of their modes.
  const segments = (least?.segments ?? []) as unknown as QRCode.QRCodeSegment[];
  const versions = new Map<EccLevel, number | undefined>([['L', least?.version]]);
  return {
    payload,
    versionAt: (level) => {
      if (least !== undefined && !versions.has(level)) {
        const made = tried(() => QRCode.create(segments, { errorCorrectionLevel: level, maskPattern: ANY_MASK }));
        versions.set(level, made?.version);
      }
      return versions.get(level);
    },
    create: (level) => QRCode.create(segments, { errorCorrectionLevel: level }),
  };
}

/**
 * The QR of `payload` in a square of `space` pixels: the largest integer module size, a quiet zone of 4 modules (fewer,
 * but never under 2, only where 4 do not fit, or cost the second pixel of a module, which helps cameras more), and the
 * strongest error correction up to `strongest` that costs neither module size nor quiet zone. One pixel a module is allowed: how large that is, only the panel's pitch says.
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

/** Pixels on a side of one module, and modules of the quiet zone. */
export interface QrRoom {
  modulePixels: number;
  quietModules: number;
}

/** The size of the QR of `payload` in a square of `space` pixels; undefined where it does not fit. */
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
