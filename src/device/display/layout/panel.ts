import { create } from 'qrcode/lib/core/qrcode.js';
import { needsQr, qrTextOf, type Scene } from '../../scene.ts';
import { withoutAccents } from '../charset.ts';
import { type CharacterFrame, type PanelFrame, type PanelQr, type PanelSurface, UPPER_HALF } from '../contract.ts';
import { fitQr, type QrFit, QUIET_MODULES } from '../qr.ts';
import { DEVICE_CODE, NO_ROOM_FOR_QR, pageOf, TIME_LEFT } from '../words.ts';

/** Fits a payload into the QR square of a panel, if that is scannable. */
export function fitOnPanel({ qr }: PanelSurface, payload: string): QrFit {
  if (qr === null) return { ok: false, reason: 'this panel has no QR component' };
  // Panels count bytes, and letters outside ASCII have more than one.
  const { length } = new TextEncoder().encode(payload);
  if (length > qr.charsMax) {
    return {
      ok: false,
      reason: `the QR code has ${length} characters; this panel's QR component takes ${qr.charsMax}`,
    };
  }
  return qr.modulesFor === undefined ? capped(fitQr(payload, qr.sidePixels, 'L'), qr) : ownSize(payload, length, qr);
}

/** Returns `fit`, with modules at most as large as the panel can draw. */
function capped(fit: QrFit, { modulePixelsMax = Infinity }: PanelQr): QrFit {
  if (!fit.ok || fit.qr.modulePixels <= modulePixelsMax) return fit;
  const { modules, quietModules } = fit.qr;
  const side = (modules + 2 * quietModules) * modulePixelsMax;
  return { ok: true, qr: { ...fit.qr, modulePixels: modulePixelsMax, side } };
}

/** Returns the QR of a panel that chooses the version by the bytes of the payload. The margin is outside its square. */
function ownSize(payload: string, bytes: number, qr: PanelQr): QrFit {
  const { sidePixels, modulePixelsMax = Infinity, modulesFor } = qr;
  const modules = modulesFor?.(bytes) ?? 0;
  const modulePixels = Math.min(Math.floor(sidePixels / modules), modulePixelsMax);
  if (modulePixels < 1) {
    return {
      ok: false,
      sideMin: modules,
      reason: `the panel draws ${modules} x ${modules} modules; its square has ${sidePixels} x ${sidePixels} pixels`,
    };
  }
  const segments = [{ data: new TextEncoder().encode(payload), mode: 'byte' as const }];
  const version = (modules - 17) / 4;
  const made = create(segments, { version, errorCorrectionLevel: 'L' });
  const side = (modules + 2 * QUIET_MODULES) * modulePixels;
  const { data: dark } = made.modules;
  return { ok: true, qr: { version, ecc: 'L', modules, modulePixels, quietModules: QUIET_MODULES, side, dark } };
}

/** Lays out a scene as texts and QR string of a smart panel. `fit` belongs to the scene's QR. */
export function layoutPanel(scene: Scene, fit: QrFit | undefined, surface: PanelSurface): PanelFrame {
  const page = pageOf(scene);
  const say = (text: string | undefined) => (surface.accents ? (text ?? '') : withoutAccents(text ?? ''));
  const fact = (label: string) => say(page.facts.find((it) => it.label === label)?.value);
  const codes = page.facts.filter((it) => !['Nội dung', 'Người nhận', 'Tài khoản'].includes(it.label));
  return {
    kind: 'panel',
    screen: scene.kind,
    title: say([page.mark, page.title].filter(Boolean).join(' • ')),
    amount: say(page.amount),
    content: say(page.code) || fact('Nội dung') || say(codes.map((it) => it.value).join(' ')),
    holder: page.code === undefined ? fact('Người nhận') : fact(DEVICE_CODE),
    account: fact('Tài khoản'),
    timeLeft: page.timeLeft === undefined ? '' : say(`${TIME_LEFT} ${page.timeLeft}`),
    hint: needsQr(scene) && fit?.ok === false ? say(NO_ROOM_FOR_QR) : say(page.due?.text ?? page.hint),
    offline: say(page.badge?.text),
    mark: page.mark ?? '',
    qrCode: fit?.ok ? (qrTextOf(scene) ?? null) : null,
  };
}

const PICTURE_COLUMNS_MIN = 64;
/** The largest QR code, of 177 modules, has room in this. */
const QR_SIDE_MAX = 185;
const INK = 0x17233a;
const PAPER = 0xffffff;

/**
 * Returns a panel frame as a page of characters, for the box's web pages. The panel has fonts and places of its own.
 */
export function picturePanel(frame: PanelFrame): CharacterFrame {
  const { title, amount, content, holder, account, timeLeft, hint, offline } = frame;
  const lines = [title, amount, content, holder, account, timeLeft, hint, offline].filter((text) => text !== '');
  const qrRows = frame.qrCode === null ? [] : halfBlocks(frame.qrCode);
  const columns = Math.max(PICTURE_COLUMNS_MIN, qrRows[0]?.length ?? 0);
  const across = Array.from({ length: columns }, (_, column) => column);
  const texts = lines.map((line) => {
    const chars = Array.from(line);
    return across.map((column) => ({ char: chars[column] ?? ' ', ink: INK, paper: PAPER }));
  });
  const codes = qrRows.map((row) =>
    across.map((column) => ({
      char: UPPER_HALF,
      ink: row[column]?.upper ?? PAPER,
      paper: row[column]?.lower ?? PAPER,
    })),
  );
  const cells = [...texts, ...codes].flat();
  return { kind: 'characters', columns, rows: texts.length + codes.length, cells };
}

/** Returns the code with its quiet zone as colours, two modules per cell. */
function halfBlocks(payload: string): { upper: number; lower: number }[][] {
  const fit = fitQr(payload, QR_SIDE_MAX, 'L');
  if (!fit.ok) return [];
  const { dark, modules } = fit.qr;
  const side = modules + 2 * QUIET_MODULES;
  const shade = (x: number, y: number) => {
    const [column, row] = [x - QUIET_MODULES, y - QUIET_MODULES];
    const inside = column >= 0 && row >= 0 && column < modules && row < modules;
    return inside && dark[row * modules + column] === 1 ? 0 : PAPER;
  };
  return Array.from({ length: Math.ceil(side / 2) }, (_, row) =>
    Array.from({ length: side }, (_, x) => ({ upper: shade(x, 2 * row), lower: shade(x, 2 * row + 1) })),
  );
}
