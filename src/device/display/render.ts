import { qrTextOf, type Scene } from '../scene.ts';
import type { Frame, PixelSurface, Surface } from './contract.ts';
import { layoutCharacters } from './layout/characters.ts';
import { markHeight } from './layout/edge.ts';
import { type FaceSource, openFaces } from './layout/fonts/glyph-sheets.ts';
import { layoutPanel } from './layout/panel.ts';
import { layoutPixels } from './layout/pixels.ts';
import { besideMark, fitBesideWords, fitOn } from './layout/room.ts';
import { bitmapTypography, isSmall, type Stage, specsOf, typographyFor, withFaces } from './layout/typography.ts';
import { createCanvas } from './pixels/canvas.ts';
import { paint, type Sheet } from './pixels/paint.ts';
import type { EccLevel, QrFit } from './qr.ts';

/** A character is this many modules high. */
const ROW_MODULES = 2;

/** The way in which a display shows a QR. */
export interface QrShown {
  /** The version, 1 to 40. A side has 17 + 4 × version modules. */
  version: number;
  ecc: EccLevel;
  /** The modules per side, without the quiet zone. */
  modules: number;
  /** The pixels per side of a module: a whole number, at least 1. */
  modulePixels: number;
  /** The modules of the light margin: 4, or down to 2 if there is no room for 4 with modules of 2 pixels. */
  quietModules: number;
  /** The code is never inverted, because most decoders cannot read that. */
  polarity: 'dark on light';
}

/** Says whether a display can show a QR for phones, and how. The reason names modules and pixels. */
export type QrScanCheck = ({ ok: true } & QrShown) | { ok: false; reason: string };

/** Draws scenes for one surface. Both methods are fast and do no I/O. */
export interface Renderer {
  /**
   * Draws a scene. It paints pixels when a caller first reads their `data`, because often nobody looks at each second
   * of a countdown. They are valid until the second next painting: two buffers alternate, because new megabytes every
   * second would burden the memory. A caller that needs a frame longer copies its data.
   */
  render(scene: Scene): Frame;
  /**
   * Returns whether this surface can show the payload scannably, and how, beside the mark of a sandbox if the scene has
   * one. The reason of a refusal names modules and pixels.
   */
  checkQr(qrCode: string, sandbox?: boolean): QrScanCheck;
}

export interface RendererDeps extends FaceSource {
  /** The renderer calls it before each painting. */
  beforePainting?: (() => void) | undefined;
}

/**
 * Opens a renderer. For pixels it loads the fonts from `cacheDir`, or draws them there once. There is nothing to close.
 * Throws a PayboxError `FONT_MISSING` when the fonts cannot be made.
 */
export async function openRenderer(surface: Surface, deps: RendererDeps): Promise<Renderer> {
  if (surface.kind === 'characters') {
    const { fitFor, checkQr } = fitsOf(surface, ROW_MODULES);
    return { checkQr, render: (scene) => layoutCharacters(scene, fitFor(scene), surface) };
  }
  if (surface.kind === 'panel') {
    const { fitFor, checkQr } = fitsOf(surface, 0);
    return { checkQr, render: (scene) => layoutPanel(scene, fitFor(scene), surface) };
  }
  const stage = await openStage(surface, deps);
  const { fitFor, checkQr } = fitsOf(surface, markHeight(stage));
  const blank = (): Sheet => ({ canvas: createCanvas(surface.width, surface.height), items: [] });
  let sheet = blank();
  let spare = blank();
  const painted = (scene: Scene): Uint8Array => {
    deps.beforePainting?.();
    [sheet, spare] = [spare, sheet];
    const fit = fitFor(scene);
    return paint(layoutPixels(scene, fit?.ok ? fit.qr : undefined, stage), sheet).data;
  };
  const { width, height } = surface;
  const render = (scene: Scene): Frame => {
    let data: Uint8Array | undefined;
    return {
      kind: 'pixels',
      width,
      height,
      get data() {
        data ??= painted(scene);
        return data;
      },
    };
  };
  return { checkQr, render };
}

/** Returns the QRs of scenes as large as they can be on this surface, some beside a mark of `markPx`. */
function fitsOf(surface: Surface, markPx: number) {
  const fitted = remembering((qrCode) => fitOn(surface, qrCode));
  const beside = remembering((qrCode) => besideMark(surface, qrCode, fitted(qrCode), markPx));
  const fitFor = (scene: Scene) => {
    if (scene.kind === 'enrol') return fitBesideWords(surface, scene.url);
    const qrCode = qrTextOf(scene);
    if (qrCode === undefined) return undefined;
    return 'sandbox' in scene ? beside(qrCode) : fitted(qrCode);
  };
  const checkQr = (qrCode: string, sandbox = false) => qrCheckOf(sandbox ? beside(qrCode) : fitted(qrCode));
  return { fitFor, checkQr };
}

/** Loads the fonts of a pixel surface for `layoutPixels`. Throws as `openRenderer` does. */
export async function openStage(surface: PixelSurface, deps: FaceSource): Promise<Stage> {
  if (isSmall(surface)) return { surface, type: bitmapTypography() };
  const typography = typographyFor(surface.width, surface.height);
  const faces = await openFaces(specsOf(typography), deps);
  return { surface, type: withFaces(typography, faces) };
}

/** Returns the work with its last answer remembered, because a payment asks again every second of its countdown. */
function remembering(work: (qrCode: string) => QrFit): (qrCode: string) => QrFit {
  let last: { qrCode: string; fit: QrFit } | undefined;
  return (qrCode) => {
    if (last?.qrCode !== qrCode) last = { qrCode, fit: work(qrCode) };
    return last.fit;
  };
}

function qrCheckOf(fit: QrFit): QrScanCheck {
  if (!fit.ok) return { ok: false, reason: fit.reason };
  const { version, ecc, modules, modulePixels, quietModules } = fit.qr;
  return { ok: true, version, ecc, modules, modulePixels, quietModules, polarity: 'dark on light' };
}
