import type { Box } from '../layout/items.ts';
import type { IconName } from '../words.ts';
import { blend, type Canvas, fill, intersection } from './canvas.ts';

/** The corners of a line in a square of side 1. */
type Line = readonly Point[];
type Point = readonly [x: number, y: number];

const THICKNESS = 0.085;
const ARC_STEPS = 24;

/** The lines of each icon. A line of one point is a dot. */
const LINES: Readonly<Record<IconName, readonly Line[]>> = {
  dots: [line('28,50'), line('50,50'), line('72,50')],
  link: [arc(0.36, 0.5, 0.14, 0.17, 0.83), arc(0.64, 0.5, 0.14, 0.67, 1.33)],
  dong: [arc(0.47, 0.5, 0.13, 0, 1), line('60,24 60,64'), line('50,32 70,32'), line('36,76 64,76')],
  tick: [line('28,53 44,68 73,36')],
  clock: [arc(0.5, 0.5, 0.28, 0, 1), line('50,36 50,52 61,58')],
  cross: [line('34,34 66,66'), line('66,34 34,66')],
  alert: [line('50,27 50,55'), line('50,72')],
};

/** Returns a line from corners in hundredths of the side, as `x,y x,y`. */
function line(corners: string): Line {
  return corners.split(' ').map((corner) => {
    const [x = 0, y = 0] = corner.split(',').map((hundredths) => Number(hundredths) / 100);
    return [x, y];
  });
}

/** Returns points of a circle between two fractions of a turn, clockwise from the right. */
function arc(x: number, y: number, radius: number, from: number, to: number): Line {
  return Array.from({ length: ARC_STEPS + 1 }, (_, step) => {
    const angle = 2 * Math.PI * (from + ((to - from) * step) / ARC_STEPS);
    return [x + radius * Math.cos(angle), y + radius * Math.sin(angle)] as const;
  });
}

/** Paints a disc of colour `disc` that fills `box`, with the icon's lines on it. */
export function paintIcon(canvas: Canvas, box: Box, name: IconName, disc: number, stroke: number): void {
  const size = box.width;
  paintDisc(canvas, box.x + size / 2, box.y + size / 2, size / 2, disc);
  for (const line of LINES[name]) {
    const points = line.map(([x, y]) => [box.x + x * size, box.y + y * size] as const);
    const radius = (size * THICKNESS) / (line.length === 1 ? 1.5 : 2);
    paintLine(canvas, points, Math.max(0.5, radius), stroke);
  }
}

/** Paints a filled circle with smooth edges. */
export function paintDisc(canvas: Canvas, x: number, y: number, radius: number, color: number): void {
  const part = intersection(boxAround([[x, y]], radius + 1), canvas.clip);
  const [left, right] = [part.x, part.x + part.width];
  for (let row = part.y; row < part.y + part.height; row += 1) {
    const down = row + 0.5 - y;
    const solid = Math.floor(Math.sqrt(Math.max(0, (radius - 1) ** 2 - down * down)));
    const from = Math.ceil(x) - solid;
    const to = Math.floor(x) + solid;
    fill(canvas, { x: from, y: row, width: to - from, height: 1 }, color);
    const edge = (column: number) => {
      const inside = radius - Math.sqrt((column + 0.5 - x) ** 2 + down * down) + 0.5;
      blend(canvas, column, row, color, Math.round(Math.min(1, inside) * 255));
    };
    for (let column = left; column < Math.min(from, right); column += 1) edge(column);
    for (let column = Math.max(from, to, left); column < right; column += 1) edge(column);
  }
}

/** Paints all pixels nearer than `radius` to the line. Coverage depends on the distance to the edge. */
function paintLine(canvas: Canvas, line: Line, radius: number, color: number): void {
  const around = boxAround(line, radius + 1);
  const part = intersection(around, canvas.clip);
  if (part.width === 0) return;
  const coverage = new Uint8Array(part.width * part.height);
  for (const [index, to] of line.entries()) {
    const from = line[index - 1] ?? (line.length === 1 ? to : undefined);
    if (from !== undefined) coverStroke(coverage, part, from, to, radius);
  }
  for (let at = 0, row = part.y; row < part.y + part.height; row += 1) {
    for (let column = part.x; column < part.x + part.width; column += 1, at += 1) {
      blend(canvas, column, row, color, coverage[at] ?? 0);
    }
  }
}

/**
 * Raises the coverage of the pixels of `part` to that of one straight stroke. The nearest part of the stroke decides a
 * pixel.
 */
function coverStroke(coverage: Uint8Array, part: Box, from: Point, to: Point, radius: number): void {
  const [acrossX, acrossY] = [to[0] - from[0], to[1] - from[1]];
  const length = acrossX * acrossX + acrossY * acrossY;
  const { x, y, width, height } = intersection(boxAround([from, to], radius + 1), part);
  for (let row = y; row < y + height; row += 1) {
    for (let column = x; column < x + width; column += 1) {
      const [fromX, fromY] = [column + 0.5 - from[0], row + 0.5 - from[1]];
      const along = (fromX * acrossX + fromY * acrossY) / length;
      const share = length === 0 ? 0 : Math.max(0, Math.min(1, along));
      const inside = radius - Math.sqrt((fromX - share * acrossX) ** 2 + (fromY - share * acrossY) ** 2) + 0.5;
      if (inside <= 0) continue;
      const at = (row - part.y) * part.width + column - part.x;
      coverage[at] = Math.max(coverage[at] ?? 0, Math.round(Math.min(1, inside) * 255));
    }
  }
}

/** Returns the whole pixels around all points, with `reach` on each side. */
function boxAround(line: Line, reach: number): Box {
  const xs = line.map(([x]) => x);
  const ys = line.map(([, y]) => y);
  const x = Math.floor(Math.min(...xs) - reach);
  const y = Math.floor(Math.min(...ys) - reach);
  return { x, y, width: Math.ceil(Math.max(...xs) + reach) - x, height: Math.ceil(Math.max(...ys) + reach) - y };
}
