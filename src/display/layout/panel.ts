import type { Scene } from '../../scene.ts';
import { withoutAccents } from '../charset.ts';
import { type CharacterFrame, type PanelFrame, type PanelSurface, UPPER_HALF } from '../contract.ts';
import { fitQr, type QrFit, QUIET_MODULES_MIN } from '../qr.ts';
import { NO_ROOM_FOR_QR, OFFLINE, pageOf, TIME_LEFT } from '../words.ts';

/** Whether a panel can draw this payload scannably in the square that it draws QR codes in. */
export function fitOnPanel({ qr }: PanelSurface, payload: string): QrFit {
  if (qr === null) return { ok: false, reason: 'this panel has no QR component' };
  if (payload.length > qr.charsMax) {
    return { ok: false, reason: `${payload.length} characters; this panel's QR component takes ${qr.charsMax}` };
  }
  return fitQr(payload, qr.sidePixels, 'L');
}

/** A scene as the texts and the QR string of a smart panel. `fit` is that of a payment's QR. */
export function layoutPanel(scene: Scene, fit: QrFit | undefined, surface: PanelSurface): PanelFrame {
  const page = pageOf(scene);
  const say = (text: string | undefined) => (surface.accents ? (text ?? '') : withoutAccents(text ?? ''));
  const fact = (label: string) => say(page.facts.find((it) => it.label === label)?.value);
  const codes = page.facts.filter((it) => !['Nội dung', 'Người nhận', 'Tài khoản'].includes(it.label));
  return {
    kind: 'panel',
    screen: scene.kind,
    title: say(page.title),
    amount: say(page.amount),
    content: fact('Nội dung') || say(codes.map((it) => it.value).join(' ')),
    holder: fact('Người nhận'),
    account: fact('Tài khoản'),
    timeLeft: page.timeLeft === undefined ? '' : say(`${TIME_LEFT} ${page.timeLeft}`),
    hint: fit !== undefined && !fit.ok ? say(NO_ROOM_FOR_QR) : say(page.hint),
    offline: page.offline ? say(OFFLINE) : '',
    qrCode: scene.kind === 'payment' && fit?.ok ? scene.qrCode : null,
  };
}

const PICTURE_COLUMNS = 64;
const INK = 0x17233a;
const PAPER = 0xffffff;

/** What a panel shows, as a page of characters, for the box's own pages: its fonts and places are the panel's. */
export function picturePanel(frame: PanelFrame): CharacterFrame {
  const { title, amount, content, holder, account, timeLeft, hint, offline } = frame;
  const lines = [title, amount, content, holder, account, timeLeft, hint, offline].filter((text) => text !== '');
  const qrRows = frame.qrCode === null ? [] : halfBlocks(frame.qrCode);
  const rows = [...lines.map((line) => Array.from(line.slice(0, PICTURE_COLUMNS))), ...qrRows.map((row) => [...row])];
  const cells = rows.flatMap((row, index) => {
    const isText = index < lines.length;
    return Array.from({ length: PICTURE_COLUMNS }, (_, column) => {
      const code = row[column] ?? (isText ? ' ' : '0');
      if (isText) return { char: code, ink: INK, paper: PAPER };
      const shade = (bit: number) => (Number(code) & bit ? 0 : PAPER);
      return { char: UPPER_HALF, ink: shade(1), paper: shade(2) };
    });
  });
  return { kind: 'characters', columns: PICTURE_COLUMNS, rows: rows.length, cells };
}

/** Rows of digits, one a cell: bit 0 is a dark upper module, bit 1 a dark lower one. */
function halfBlocks(payload: string): string[] {
  const fit = fitQr(payload, PICTURE_COLUMNS, 'L');
  if (!fit.ok) return [];
  const { dark, modules } = fit.qr;
  const quiet = Math.max(QUIET_MODULES_MIN, fit.qr.quietModules);
  const side = modules + 2 * quiet;
  const isDark = (x: number, y: number) =>
    x >= quiet &&
    y >= quiet &&
    x < quiet + modules &&
    y < quiet + modules &&
    dark[(y - quiet) * modules + x - quiet] === 1;
  return Array.from({ length: Math.ceil(side / 2) }, (_, row) =>
    Array.from({ length: side }, (_, x) => (isDark(x, 2 * row) ? 1 : 0) | (isDark(x, 2 * row + 1) ? 2 : 0)).join(''),
  );
}
