import { needsQr, type Scene } from '../../scene.ts';
import { type Cell, type CharacterFrame, type CharacterSurface, UPPER_HALF } from '../contract.ts';
import type { Qr, QrFit } from '../qr.ts';
import { NO_ROOM_FOR_QR, type Page, pageOf, TIME_LEFT } from '../words.ts';
import { layoutPlain } from './plain.ts';
import { TEXT_COLUMNS_MIN } from './room.ts';
import { BLACK, THEMES, WARNING, WHITE } from './theme.ts';
import { wrap } from './wrap.ts';

/** From this width on, a label is in the line of its value. */
const LABEL_COLUMNS_MIN = 40;
const INK = 0x17233a;
const MUTED = 0x5a6880;

interface Line {
  text: string;
  ink: number;
  paper: number;
  /** With too few rows, the layout leaves out the highest rank first. */
  rank: number;
}

interface Area {
  column: number;
  row: number;
  columns: number;
  rows: number;
}

/**
 * Lays out a scene as a page of characters, no larger than the surface. With half blocks the page is only as high as
 * its contents, and a blank one has no rows. It is dark on a light ground, whatever the colours of the terminal. `fit`
 * belongs to the scene's QR.
 */
export function layoutCharacters(scene: Scene, fit: QrFit | undefined, surface: CharacterSurface): CharacterFrame {
  if (!surface.halfBlocks) return layoutPlain(scene, surface);
  if (scene.kind === 'blank') return { kind: 'characters', columns: surface.columns, rows: 0, cells: [] };
  const page = pageOf(scene);
  if (fit?.ok) return withQr(page, fit.qr, surface);
  const { columns, rows } = surface;
  const hint = fit !== undefined && needsQr(scene) ? roomNote(fit.sideMin) : page.hint;
  const lines = chosen(linesOf({ ...page, hint }, columns - 2), rows);
  const height = Math.max(1, lines.length);
  const cells = blankCells(columns, height);
  write(cells, columns, { column: 0, row: 0, columns, rows }, lines);
  return { kind: 'characters', columns, rows: height, cells };
}

function roomNote(sideMin: number | undefined): string {
  return sideMin === undefined
    ? NO_ROOM_FOR_QR
    : `${NO_ROOM_FOR_QR}: cần ${sideMin} cột × ${Math.ceil(sideMin / 2)} hàng`;
}

function withQr(page: Page, qr: Qr, surface: CharacterSurface): CharacterFrame {
  const { columns } = surface;
  const qrRows = Math.ceil(qr.side / 2);
  const beside = columns - qr.side >= TEXT_COLUMNS_MIN;
  const area: Area = beside
    ? { column: qr.side, row: 0, columns: columns - qr.side, rows: qrRows }
    : { column: 0, row: qrRows, columns, rows: surface.rows - qrRows };
  const lines = chosen(linesOf(page, area.columns - 2), area.rows);
  const rows = beside ? qrRows : qrRows + lines.length;
  const cells = blankCells(columns, rows);
  const left = beside ? 0 : Math.floor((columns - qr.side) / 2);
  for (let row = 0; row < qrRows; row += 1) {
    for (let column = 0; column < qr.side; column += 1) {
      const ink = moduleColor(qr, column, row * 2);
      const paper = moduleColor(qr, column, row * 2 + 1);
      cells[row * columns + left + column] = { char: UPPER_HALF, ink, paper };
    }
  }
  write(cells, columns, { ...area, row: area.row + (beside ? Math.floor((qrRows - lines.length) / 2) : 0) }, lines);
  return { kind: 'characters', columns, rows, cells };
}

function moduleColor(qr: Qr, x: number, y: number): number {
  const column = Math.floor(x / qr.modulePixels) - qr.quietModules;
  const row = Math.floor(y / qr.modulePixels) - qr.quietModules;
  const inside = column >= 0 && row >= 0 && column < qr.modules && row < qr.modules;
  return inside && qr.dark[row * qr.modules + column] === 1 ? BLACK : WHITE;
}

/** Returns all texts of the page in reading order, in lines of at most `width` characters, with blank lines between. */
function linesOf(page: Page, width: number): Line[] {
  const theme = THEMES[page.tone];
  const lines: Line[] = [];
  const add = (text: string, rank: number, ink = INK, paper = WHITE, linesMax = 3) => {
    const wrapped = wrap(text, width, linesMax, (each) => each.length);
    for (const line of wrapped.lines) lines.push({ text: line, ink, paper, rank });
  };
  const blank = () => lines.push({ text: '', ink: INK, paper: WHITE, rank: 20 });
  add(page.title, page.needsTitle ? 0 : 3, theme.ink, theme.paper, 2);
  blank();
  // The page shows an amount completely or not at all, because a cut one would be wrong.
  if (page.amount !== undefined && page.amount.length <= width) add(page.amount, 0, INK, WHITE, 1);
  const due = page.due && [page.due.text, page.due.short].find((text) => text.length <= width);
  if (due !== undefined) add(due, 0, INK, WHITE, 1);
  if (page.code !== undefined && page.code.length <= width) add(page.code, 0, INK, WHITE, 1);
  if (page.hint !== undefined && !page.hintLast) add(page.hint, 2);
  for (const [index, { label, value }] of page.facts.entries()) {
    const inLine = width >= LABEL_COLUMNS_MIN;
    if (!inLine && !page.list) {
      blank();
      add(label, 10 + index, MUTED, WHITE, 1);
    }
    add(inLine ? `${label}: ${value}` : value, 4 + index, INK, WHITE, index === 0 ? 3 : 2);
  }
  if (page.hint !== undefined && page.hintLast) add(page.hint, 2);
  if (page.timeLeft !== undefined) {
    blank();
    add(`${TIME_LEFT} ${page.timeLeft}`, 1, INK, WHITE, 1);
  }
  if (page.badge !== undefined) {
    blank();
    add(page.badge.text, 0, WARNING.ink, WARNING.paper, 1);
  }
  // It is below everything else, and the layout leaves it out last.
  if (page.mark !== undefined) add(page.mark, -1, WARNING.ink, WARNING.paper, 1);
  return lines;
}

function chosen(lines: readonly Line[], rows: number): Line[] {
  let kept = [...lines];
  while (kept.length > Math.max(0, rows)) {
    const worst = Math.max(...kept.map(({ rank }) => rank));
    kept = kept.toSpliced(
      kept.findLastIndex(({ rank }) => rank === worst),
      1,
    );
  }
  return kept;
}

function blankCells(columns: number, rows: number): Cell[] {
  return Array.from({ length: columns * rows }, () => ({ char: ' ', ink: INK, paper: WHITE }));
}

/** Writes lines from the top of `area`, one column from its left if there is room. */
function write(cells: Cell[], columns: number, area: Area, lines: readonly Line[]): void {
  for (const [index, { text, ink, paper }] of lines.entries()) {
    const start = (area.row + index) * columns + area.column;
    const indent = text.length < area.columns ? 1 : 0;
    for (let column = 0; column < area.columns; column += 1) {
      cells[start + column] = { char: text.charAt(column - indent) || ' ', ink, paper };
    }
  }
}
