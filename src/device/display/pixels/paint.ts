import type { PixelFrame } from '../contract.ts';
import { type Box, type Item, sameItem } from '../layout/items.ts';
import { BLACK } from '../layout/theme.ts';
import type { Qr } from '../qr.ts';
import { blend, type Canvas, fill, frameOf, intersection } from './canvas.ts';
import { paintDisc, paintIcon } from './icons.ts';

/** A canvas and the picture on it. */
export interface Sheet {
  canvas: Canvas;
  items: readonly Item[];
}

/**
 * Paints a picture, its items in order, and cuts parts outside the canvas. It paints only the rectangle around changed
 * items. The first item of every picture must cover the whole canvas.
 */
export function paint(items: readonly Item[], sheet: Sheet): PixelFrame {
  const { canvas } = sheet;
  const whole = { x: 0, y: 0, width: canvas.width, height: canvas.height };
  canvas.clip = intersection(changedPart(sheet.items, items) ?? whole, whole);
  for (const item of items) {
    if (intersection(inkBox(item), canvas.clip).width > 0) paintItem(canvas, item);
  }
  canvas.clip = whole;
  sheet.items = items;
  return frameOf(canvas);
}

/** Returns the rectangle around everything that differs; `undefined` if the pictures cannot be compared. */
function changedPart(before: readonly Item[], after: readonly Item[]): Box | undefined {
  if (before.length !== after.length) return undefined;
  const changed = after.flatMap((item, index) => {
    const old = before[index];
    return old === undefined || sameItem(old, item) ? [] : [inkBox(old), inkBox(item)];
  });
  const left = Math.min(...changed.map(({ x }) => x));
  const top = Math.min(...changed.map(({ y }) => y));
  const right = Math.max(...changed.map(({ x, width }) => x + width));
  const bottom = Math.max(...changed.map(({ y, height }) => y + height));
  return changed.length === 0
    ? { x: 0, y: 0, width: 0, height: 0 }
    : { x: left, y: top, width: right - left, height: bottom - top };
}

/** Returns the box of an item's ink. Letters may extend a little over the sides of their box. */
function inkBox({ kind, box }: Item): Box {
  const reach = kind === 'text' ? Math.ceil(box.height / 4) : 1;
  return { x: box.x - reach, y: box.y - 1, width: box.width + 2 * reach, height: box.height + 2 };
}

function paintItem(canvas: Canvas, item: Item): void {
  if (item.kind === 'rect') paintRect(canvas, item.box, item.radius, item.color);
  else if (item.kind === 'text') paintText(canvas, item);
  else if (item.kind === 'icon') paintIcon(canvas, item.box, item.name, item.disc, item.stroke);
  else paintQr(canvas, item.box, item.qr, item.light);
}

function paintRect(canvas: Canvas, box: Box, radius: number, color: number): void {
  if (radius === 0) {
    fill(canvas, box, color);
    return;
  }
  const { x, y, width, height } = box;
  fill(canvas, { x, y: y + radius, width, height: height - 2 * radius }, color);
  fill(canvas, { x: x + radius, y, width: width - 2 * radius, height }, color);
  for (const centerX of [x + radius, x + width - radius]) {
    for (const centerY of [y + radius, y + height - radius]) paintDisc(canvas, centerX, centerY, radius, color);
  }
}

function paintText(canvas: Canvas, item: Extract<Item, { kind: 'text' }>): void {
  const { face, box, ink } = item;
  let pen = box.x;
  for (const char of item.text) {
    const glyph = face.glyphs.get(char);
    if (glyph === undefined) continue;
    const x = Math.round(pen) + glyph.left;
    const y = box.y + glyph.top;
    for (let row = 0; row < glyph.height; row += 1) {
      const start = glyph.offset + row * glyph.width;
      for (let column = 0; column < glyph.width; column += 1) {
        blend(canvas, x + column, y + row, ink, face.alpha[start + column] ?? 0);
      }
    }
    pen += glyph.advance;
  }
}

/** Paints dark modules on a light ground that includes the quiet zone. */
function paintQr(canvas: Canvas, box: Box, qr: Qr, light: number): void {
  fill(canvas, box, light);
  const { modules, modulePixels } = qr;
  const left = box.x + qr.quietModules * modulePixels;
  const top = box.y + qr.quietModules * modulePixels;
  for (let row = 0; row < modules; row += 1) {
    const y = top + row * modulePixels;
    for (let column = 0; column < modules; column += 1) {
      if (qr.dark[row * modules + column] !== 1) continue;
      const x = left + column * modulePixels;
      fill(canvas, { x, y, width: modulePixels, height: modulePixels }, BLACK);
    }
  }
}
