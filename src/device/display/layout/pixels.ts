import { needsQr, type Scene } from '../../scene.ts';
import type { PixelSurface } from '../contract.ts';
import type { Qr } from '../qr.ts';
import { type Badge, type IconName, NO_ROOM_FOR_QR, type Page, pageOf, TIME_LEFT, withoutFirstWord } from '../words.ts';
import { type Block, column, type TextBlock } from './column.ts';
import { groundFor, restOf, withEdge } from './edge.ts';
import { type Face, measure } from './fonts/faces.ts';
import type { Box, Item } from './items.ts';
import { type Arrangement, arrangementOf } from './room.ts';
import { BLACK, lookOf, type Theme, WARNING, WHITE } from './theme.ts';
import { isSmall, type Stage } from './typography.ts';

/** The countdown becomes a warning at this many seconds left. */
const HURRY_SECONDS = 30;
const ICON_SHARE = 0.22;
/** The divisor of the margins of a small panel: 1 pixel of 64, so that ten figures fit. */
const SMALL_SIDES_PER_MARGIN = 48;
/** The share above the QR of the free height above and below it. */
const ABOVE_SHARE = 0.42;
const SMALL_ABOVE_SHARE = 0.25;

/** Below this height there is one line for the amount, and one for its purpose. */
const LOW_BELOW_PX = 48;
const FIRST_FACT_RANK = 2;
/** The title yields just after the first fact. */
const TITLE_YIELDS_RANK = FIRST_FACT_RANK + 0.5;

/** Lays out a scene as a picture. `qr` is the scene's QR, if it fits on this surface. */
export function layoutPixels(scene: Scene, qr: Qr | undefined, stage: Stage): Item[] {
  const { width, height } = stage.surface;
  if (scene.kind === 'blank') return [{ kind: 'rect', box: { x: 0, y: 0, width, height }, radius: 0, color: BLACK }];
  const page = pageOf(scene);
  const theme = lookOf(isSmall(stage.surface)).themes[page.tone];
  const ground: Item = { kind: 'rect', box: { x: 0, y: 0, width, height }, radius: 0, color: theme.paper };
  if (qr !== undefined) {
    const hurry = scene.kind === 'payment' && scene.secondsLeft <= HURRY_SECONDS;
    return [ground, ...withQr(page, theme, qr, hurry, stage)];
  }
  return [ground, ...message(needsQr(scene) ? { ...page, hint: NO_ROOM_FOR_QR } : page, theme, stage)];
}

function withQr(page: Page, theme: Theme, qr: Qr, hurry: boolean, stage: Stage): Item[] {
  const { width, height } = stage.surface;
  const arrangement = arrangementOf(stage.surface, qr);
  const { head, facts, foot } = qrBlocks(page, theme, hurry, stage, widthBeside(arrangement, stage, qr));
  const panel = panelOf(arrangement, groundFor(arrangement, page, qr, stage), qr, heightOfAmount(page, stage));
  const x = panel.x + Math.floor((panel.width - qr.side) / 2);
  const y = panel.y + Math.floor((panel.height - qr.side) / 2);
  const { light } = lookOf(isSmall(stage.surface));
  const code: Item[] = [
    { kind: 'rect', box: panel, radius: 0, color: light },
    { kind: 'qr', box: { x, y, width: qr.side, height: qr.side }, qr, light },
  ];
  if (arrangement === 'alone') {
    const under = { x: 0, y: y + qr.side, width, height: height - y - qr.side };
    return [...code, ...withEdge([], page, under, stage)];
  }
  const margin = marginOf(stage);
  if (arrangement === 'beside') {
    const right = { x: panel.width, y: 0, width: width - panel.width, height };
    const texts = column([...head, ...facts, ...foot], inset(restOf(page, right, stage), margin, margin), 'left');
    return [...code, ...withEdge(texts, page, right, stage)];
  }
  const bottom = panel.y + panel.height;
  const below = { x: 0, y: bottom, width, height: height - bottom };
  const room = inset(restOf(page, below, stage), margin, margin / 2);
  const edged = (texts: readonly Item[]) => withEdge(texts, page, below, stage);
  if (panel.y === 0) return [...code, ...edged(column([...head, ...facts, ...foot], room, 'center'))];
  const above = inset({ x: 0, y: 0, width, height: panel.y }, margin, margin / 2);
  const texts = column([...facts, ...foot], room, 'center');
  return [...code, ...column(head, above, 'center'), ...edged(texts)];
}

/** Returns the width for a line of text beside, above or below the QR. */
function widthBeside(arrangement: Arrangement, stage: Stage, qr: Qr): number {
  const { width } = stage.surface;
  return (arrangement === 'beside' ? width - qr.side : width) - 2 * marginOf(stage);
}

/**
 * Returns the height that the amount needs in a line of its own above the QR of a small panel; 0 for a page without an
 * amount.
 */
function heightOfAmount({ amount }: Page, stage: Stage): number {
  if (amount === undefined) return 0;
  const margin = marginOf(stage);
  const face = stage.type.amount.find((each) => measure(amount, each) <= stage.surface.width - 2 * margin);
  return face === undefined ? 0 : face.lineHeight + 2 * margin + Math.round(margin / 2);
}

/**
 * Returns the light ground of the QR. Beside texts it is as large as the code, between texts it has full width, and
 * alone it covers the whole screen. On a small panel it covers only the code, because light needs current on an LED
 * panel and reduces the contrast for cameras.
 */
function panelOf(arrangement: Arrangement, surface: PixelSurface, qr: Qr, amountPx: number): Box {
  const { width, height } = surface;
  if (isSmall(surface)) return codeOnly(arrangement, surface, qr.side, amountPx);
  if (arrangement === 'alone') return { x: 0, y: 0, width, height };
  if (arrangement === 'beside') return { x: 0, y: 0, width: qr.side, height };
  const spare = height - qr.side;
  const split = spare >= qr.side / 2;
  return { x: 0, y: split ? Math.floor(spare * ABOVE_SHARE) : 0, width, height: qr.side };
}

/**
 * Returns the place of a code without texts. It goes below the amount if there is room, because a camera that leans
 * reads a code better near the middle of the panels.
 */
function codeOnly(arrangement: Arrangement, { width, height }: PixelSurface, side: number, amountPx: number): Box {
  const across = arrangement === 'beside' ? 0 : Math.floor((width - side) / 2);
  const spare = height - side;
  const above = amountPx === 0 || amountPx > spare / 2 ? 0 : Math.max(amountPx, Math.floor(spare * SMALL_ABOVE_SHARE));
  const down = arrangement === 'stacked' ? above : Math.floor(spare / 2);
  return { x: across, y: down, width: side, height: side };
}

function qrBlocks(page: Page, theme: Theme, hurry: boolean, stage: Stage, width: number) {
  const { type, surface } = stage;
  const unit = unitOf(surface);
  const value = type.value.slice(1);
  const head: Block[] = [
    line(page.title, value, theme.accent, { gap: 0, rank: page.code === undefined ? 6 : 1, linesMax: 2 }),
    line(page.amount ?? '', type.amount, theme.ink, { gap: unit / 4, rank: 0, whole: true }),
    ...codeBlocks(page, theme, stage, width),
    line(page.hint ?? '', type.label, theme.accent, { gap: unit / 2, rank: 5, linesMax: 4, prose: true }),
  ];
  const facts = page.facts.flatMap(({ label, value: text }, index): Block[] => [
    line(label, type.label, theme.muted, { gap: unit * 0.7, rank: 10 + index, flex: index === 0 ? 1 : 0 }),
    line(text, value, theme.ink, { gap: unit / 8, rank: 2 + index, linesMax: index === 0 ? 3 : 2 }),
  ]);
  const foot: Block[] = [];
  if (page.timeLeft !== undefined) {
    const pill = pillOf(hurry ? WARNING.paper : theme.disc, 'clock', surface);
    const rest = { gap: unit, rank: 1, flex: 1, whole: true, short: page.timeLeft, pill } as const;
    foot.push(line(`${TIME_LEFT} ${page.timeLeft}`, value, hurry ? WARNING.ink : WHITE, rest));
  }
  if (page.badge !== undefined) foot.push(badgeBlock(page.badge, stage, unit / 2));
  return { head, facts, foot };
}

function message(page: Page, theme: Theme, stage: Stage): Item[] {
  const { type, surface } = stage;
  const unit = unitOf(surface);
  const sizePx = Math.round(Math.min(surface.width, surface.height) * ICON_SHARE);
  const blocks: Block[] = [
    { kind: 'icon', name: page.icon, sizePx, disc: theme.disc, stroke: theme.stroke, gap: 0, rank: 9 },
    titleBlock(page, theme, stage),
  ];
  if (page.amount !== undefined) {
    const low = surface.height < LOW_BELOW_PX;
    const faces = low ? type.amount.filter(({ lineHeight }) => lineHeight <= surface.height / 2) : type.amount;
    blocks.push(line(page.amount, faces, theme.ink, { gap: unit / 4, rank: 0, whole: true, steady: true }));
  }
  blocks.push(...dueBlocks(page, theme, stage, surface.width - 2 * marginOf(stage)));
  const margin = marginOf(stage);
  blocks.push(...codeBlocks(page, theme, stage, surface.width - 2 * margin));
  const rank = page.needsTitle && !page.hintLast ? 1 : 5;
  const hint = line(page.hint ?? '', type.value, theme.accent, { gap: unit, rank, linesMax: 4, prose: true });
  const facts = factBlocks(page, theme, stage);
  blocks.push(...(page.hintLast ? [...facts, hint] : [hint, ...facts]));
  if (page.badge !== undefined) blocks.push(badgeBlock(page.badge, stage, unit));
  const whole = { x: 0, y: 0, width: surface.width, height: surface.height };
  const texts = column(blocks, inset(restOf(page, whole, stage), margin, margin), 'center');
  return withEdge(texts, page, whole, stage);
}

/**
 * Returns the title. On a small panel it makes room for the first fact of a list or code, and for the content of an
 * order without its QR.
 */
function titleBlock(page: Page, theme: Theme, { type, surface }: Stage): Block {
  const small = isSmall(surface);
  const mattersLess =
    page.list || page.code !== undefined || page.hintLast || (page.tone === 'bad' && page.amount !== undefined);
  const yields = small && page.facts.length > 0 && mattersLess;
  const rest = { gap: unitOf(surface) * 0.7, linesMax: small ? 3 : 2 };
  if (page.needsTitle) {
    const isTight = small && (surface.height < LOW_BELOW_PX || (page.due ?? page.badge) !== undefined);
    const [text, short] = isTight
      ? [page.shortTitle, withoutFirstWord(page.shortTitle)]
      : [page.title, page.shortTitle];
    return line(text, type.title, theme.ink, { ...rest, rank: 0, short });
  }
  if (page.due !== undefined) {
    return line(page.title, type.title, theme.ink, { ...rest, rank: 1, short: page.shortTitle });
  }
  if (!yields) return line(page.title, type.title, theme.ink, { ...rest, rank: 0 });
  return line(page.title, type.title, theme.ink, { ...rest, rank: TITLE_YIELDS_RANK, short: page.shortTitle });
}

function factBlocks(page: Page, theme: Theme, { type, surface }: Stage): Block[] {
  const gap = unitOf(surface);
  const small = isSmall(surface);
  const linesMax = surface.height < LOW_BELOW_PX ? 1 : 3;
  return page.facts.flatMap(({ label, value }, index): Block[] => {
    const rank = FIRST_FACT_RANK + index;
    if (page.list) {
      const text = small ? value : `${label}  ${value}`;
      return [line(text, type.value, theme.ink, { gap: gap / 2, rank, linesMax: Math.min(2, linesMax) })];
    }
    return [
      line(label, type.label, theme.muted, { gap, rank: 10 + index }),
      line(value, type.value, theme.ink, { gap: gap / 8, rank, linesMax }),
    ];
  });
}

/** Returns the missing amount in one line or, if that is too long, the word over its amount. */
function dueBlocks({ due }: Page, theme: Theme, { type, surface }: Stage, width: number): Block[] {
  if (due === undefined) return [];
  const faces = isSmall(surface) ? type.value : type.title;
  const smallest = faces.at(-1);
  const rest = { gap: unitOf(surface) / 2, rank: 0, whole: true, steady: true } as const;
  if (smallest === undefined || measure(due.short, smallest) <= width) {
    return [line(due.text, faces, theme.accent, { ...rest, short: due.short })];
  }
  const [word, amount] = due.parts;
  const figures = type.amount.filter(({ lineHeight }) => lineHeight <= smallest.lineHeight);
  return [line(word, faces, theme.accent, rest), line(amount, figures, theme.accent, { ...rest, gap: 0 })];
}

/** Returns a code in one line, or its groups in a line each if one line would be small. */
function codeBlocks({ code }: Page, theme: Theme, { type, surface }: Stage, width: number): Block[] {
  if (code === undefined) return [];
  const [comfortable] = isSmall(surface) ? type.value : type.title.slice(1);
  const fits = comfortable === undefined || measure(code, comfortable) <= width;
  const gap = unitOf(surface) / 2;
  return (fits ? [code] : code.split('-')).map((text, index) =>
    line(text, type.title, theme.ink, { gap: index === 0 ? gap : 0, rank: 0, whole: true }),
  );
}

function badgeBlock({ text, short }: Badge, { type, surface }: Stage, gap: number): Block {
  const pill = pillOf(WARNING.paper, 'alert', surface);
  return line(text, type.value.slice(1), WARNING.ink, { gap, rank: 0, whole: true, short, pill });
}

/** Returns the pill of a text. A small panel is too narrow for an icon. */
function pillOf(paper: number, icon: IconName, surface: PixelSurface): NonNullable<TextBlock['pill']> {
  return isSmall(surface) ? { paper } : { paper, icon };
}

function line(
  text: string,
  ladder: readonly Face[],
  ink: number,
  rest: Omit<TextBlock, 'kind' | 'text' | 'ladder' | 'ink' | 'linesMax'> & { linesMax?: number },
): TextBlock {
  return { kind: 'text', text, ladder, ink, linesMax: 1, ...rest };
}

/** Returns the unit of vertical distances: the height of plain text. */
function unitOf({ width, height }: PixelSurface): number {
  return Math.sqrt(width * height) / 31;
}

function marginOf({ surface }: Stage): number {
  if (isSmall(surface)) return Math.round(Math.min(surface.width, surface.height) / SMALL_SIDES_PER_MARGIN);
  return Math.round(unitOf(surface) * 1.1);
}

function inset(box: Box, across: number, down: number): Box {
  const left = Math.round(across);
  const top = Math.round(down);
  return {
    x: box.x + left,
    y: box.y + top,
    width: Math.max(0, box.width - 2 * left),
    height: Math.max(0, box.height - 2 * top),
  };
}
