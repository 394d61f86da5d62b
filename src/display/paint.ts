import { blend, type Canvas, fill, frameOf, wordOf } from './canvas.ts';
import type { PixelFrame } from './contract.ts';
import { paintDisc, paintIcon } from './icons.ts';
import type { Box, Item } from './layout/items.ts';
import { BLACK } from './layout/theme.ts';
import type { Qr } from './qr.ts';

/** Paints a picture over whatever the canvas holds, items in order; what leaves the canvas is cut. */
export function paint(items: readonly Item[], canvas: Canvas): PixelFrame {
  for (const item of items) {
    if (item.kind === 'rect') paintRect(canvas, item.box, item.radius, item.color);
    else if (item.kind === 'text') paintText(canvas, item);
    else if (item.kind === 'icon') paintIcon(canvas, item.box, item.name, item.disc, item.stroke);
    else paintQr(canvas, item.box, item.qr, item.light);
  }
  return frameOf(canvas);
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

/** Dark modules on a light ground that includes the quiet zone. */
function paintQr(canvas: Canvas, box: Box, qr: Qr, light: number): void {
  fill(canvas, box, light);
  const { modules, modulePixels } = qr;
  const black = wordOf(BLACK);
  const left = box.x + qr.quietModules * modulePixels;
  const top = box.y + qr.quietModules * modulePixels;
  for (let row = 0; row < modules; row += 1) {
    const first = (top + row * modulePixels) * canvas.width + left;
    for (let column = 0; column < modules; column += 1) {
      if (qr.dark[row * modules + column] !== 1) continue;
      const start = first + column * modulePixels;
      canvas.words.fill(black, start, start + modulePixels);
    }
    for (let copy = 1; copy < modulePixels; copy += 1) {
      canvas.words.copyWithin(first + copy * canvas.width, first, first + modules * modulePixels);
    }
  }
}
