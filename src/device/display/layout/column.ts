import type { IconName } from '../words.ts';
import { type Face, measure } from './fonts/faces.ts';
import type { Box, Item } from './items.ts';
import { wrap } from './wrap.ts';

interface Common {
  /** The pixels above the block, unless it is the first one. */
  gap: number;
  /** Without room, the layout leaves out the highest rank first. */
  rank: number;
  /** Its share of the free room, which goes above it. */
  flex?: number;
}

export interface TextBlock extends Common {
  kind: 'text';
  text: string;
  /** A shorter text, if `text` is too wide for one line of the smallest face. */
  short?: string;
  /** The faces to try, largest first. */
  ladder: readonly Face[];
  ink: number;
  linesMax: number;
  /** True for a sentence, which wraps before it shrinks. */
  prose?: true;
  /** True for an amount. It is complete or missing, because a cut one would be wrong. */
  whole?: true;
  /** True for the most important figure. All other blocks shrink first. */
  steady?: true;
  /** The rounded ground of the text, after an icon, if any. */
  pill?: { paper: number; icon?: IconName };
}

export interface IconBlock extends Common {
  kind: 'icon';
  name: IconName;
  sizePx: number;
  disc: number;
  stroke: number;
}

export type Block = TextBlock | IconBlock;

interface Fitted {
  block: Block;
  height: number;
  width: number;
  face?: Face;
  lines: string[];
}

/** All blocks shrink by this many levels before the layout leaves one out. */
const LEVELS_BEFORE_DROPPING = 3;
const LEVELS_MAX = 12;
const STEADY_LEVELS = 2;
/** The largest number of lines of any block. */
const LINES_MAX = 4;
/** Gaps shrink together with the letters. */
const GAP_AT_LEVEL = [1, 0.8, 0.6, 0.4];

/**
 * Places blocks one below the other in `box`. Texts get the largest face that fits, then wrap, then are cut. The layout
 * leaves out blocks without room by rank.
 */
export function column(blocks: readonly Block[], box: Box, align: 'left' | 'center'): Item[] {
  for (let kept = [...blocks]; kept.length > 0; kept = withoutLeast(kept)) {
    const levels = kept.some(({ rank }) => rank > 0) ? LEVELS_BEFORE_DROPPING : LEVELS_MAX;
    for (let level = 0; level < levels; level += 1) {
      const fewer = Math.max(1, LINES_MAX - level);
      const items = atLevel(kept, box, align, level, LINES_MAX) ?? atLevel(kept, box, align, level, fewer);
      if (items) return items;
    }
  }
  return [];
}

/** Returns the blocks shrunk by `level` steps, with at most `linesMax` lines each; `undefined` if that is too high. */
function atLevel(
  blocks: readonly Block[],
  box: Box,
  align: 'left' | 'center',
  level: number,
  linesMax: number,
): Item[] | undefined {
  const fitted = blocks.flatMap((block) => shaped(block, box.width, level, linesMax) ?? []);
  const spacing = GAP_AT_LEVEL[Math.min(level, GAP_AT_LEVEL.length - 1)] ?? 1;
  const gaps = fitted.map(({ block }, index) => (index === 0 ? 0 : Math.round(block.gap * spacing)));
  const height = sum(gaps) + sum(fitted.map((each) => each.height));
  return height <= box.height ? place(fitted, gaps, box.height - height, box, align) : undefined;
}

function withoutLeast(blocks: readonly Block[]): Block[] {
  const worst = Math.max(...blocks.map(({ rank }) => rank));
  const index = blocks.findLastIndex(({ rank }) => rank === worst);
  return blocks.toSpliced(index, 1);
}

function shaped(block: Block, width: number, level: number, cap: number): Fitted | undefined {
  if (block.kind === 'icon') {
    const size = Math.round(block.sizePx * (1 - level / LEVELS_MAX));
    return size > width ? undefined : { block, width: size, height: size, lines: [] };
  }
  const step = block.steady ? Math.max(0, level - STEADY_LEVELS) : level;
  const ladder = block.ladder.slice(Math.min(step, block.ladder.length - 1));
  const smallest = ladder.at(-1);
  if (smallest === undefined || block.text === '') return undefined;
  const linesMax = Math.min(block.linesMax, cap);
  const inner = (face: Face) => width - pillExtra(block, face);
  const text = block.short !== undefined && measure(block.text, smallest) > inner(smallest) ? block.short : block.text;
  const wrapped = (face: Face, count: number) => wrap(text, inner(face), count, (each) => measure(each, face));
  const whole = (count: number) => ladder.find((face) => !wrapped(face, count).cut);
  const face = (block.prose ? undefined : whole(1)) ?? whole(linesMax) ?? smallest;
  const { lines, cut } = wrapped(face, linesMax);
  if (block.whole && cut) return undefined;
  if (lines.length === 0) return undefined;
  const widest = Math.max(...lines.map((line) => measure(line, face)));
  const height = lines.length * face.lineHeight + (block.pill ? 2 * pillPadding(face) : 0);
  return { block, face, lines, width: widest + pillExtra(block, face), height };
}

function pillPadding(face: Face): number {
  return Math.round(face.lineHeight / 6);
}

/** Returns the additional width of a pill: both ends, the icon and the space after it. */
function pillExtra(block: TextBlock, face: Face): number {
  if (block.pill === undefined) return 0;
  return block.pill.icon === undefined ? 2 * pillPadding(face) : 2 * face.lineHeight;
}

function place(fitted: readonly Fitted[], gaps: readonly number[], spare: number, box: Box, align: string): Item[] {
  const flexes = sum(fitted.map(({ block }) => block.flex ?? 0));
  const items: Item[] = [];
  let y = box.y + (flexes === 0 ? Math.floor(spare / 2) : 0);
  for (const [index, each] of fitted.entries()) {
    y += (gaps[index] ?? 0) + (flexes === 0 ? 0 : Math.floor((spare * (each.block.flex ?? 0)) / flexes));
    const x = align === 'left' ? box.x : box.x + Math.floor((box.width - each.width) / 2);
    items.push(...draw(each, { x, y, width: each.width, height: each.height }, align));
    y += each.height;
  }
  return items;
}

function draw({ block, face, lines }: Fitted, box: Box, align: string): Item[] {
  if (block.kind === 'icon') return [{ kind: 'icon', box, name: block.name, disc: block.disc, stroke: block.stroke }];
  if (face === undefined) return [];
  const line = (text: string, index: number, x: number, y: number): Item => {
    const width = measure(text, face);
    const left = align === 'left' || block.pill ? x : box.x + Math.floor((box.width - width) / 2);
    const at = { x: left, y: y + index * face.lineHeight, width, height: face.lineHeight };
    return { kind: 'text', box: at, text, face, ink: block.ink };
  };
  if (block.pill === undefined) return lines.map((text, index) => line(text, index, box.x, box.y));
  const padding = pillPadding(face);
  const side = face.lineHeight;
  // Faces have room for accents above the letters. Without this, texts would be too low in the pill.
  const lift = Math.round(padding / 2);
  const { paper, icon } = block.pill;
  const ground: Item = { kind: 'rect', box, radius: Math.floor(box.height / 2), color: paper };
  const words = (left: number) => lines.map((text, index) => line(text, index, left, box.y + padding - lift));
  if (icon === undefined) return [{ ...ground, radius: padding }, ...words(box.x + padding)];
  const iconBox = { x: box.x + Math.round(side * 0.3), y: box.y + padding, width: side, height: side };
  return [
    ground,
    { kind: 'icon', box: iconBox, name: icon, disc: paper, stroke: block.ink },
    ...words(box.x + Math.round(side * 1.5)),
  ];
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
