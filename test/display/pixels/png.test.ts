import { decode } from 'fast-png';
import { describe, expect, it } from 'vitest';
import type { Frame } from '../../../src/device/display/contract.ts';
import { bitmapGlyph } from '../../../src/device/display/layout/fonts/bitmap.ts';
import { encodePng } from '../../../src/device/display/pixels/png.ts';
import { openRenderer } from '../../../src/device/display/render.ts';
import { expectDecodes, expectGeometry, type Picture } from '../pictures.ts';
import { PAYMENT, QR_CODE } from '../scenes.ts';

function read(frame: Frame): Picture {
  const { width, height, data, channels } = decode(encodePng(frame));
  expect(channels).toBe(3);
  const pixels = new Uint8Array(width * height * 4).fill(255);
  for (let index = 0; index < width * height; index += 1) {
    pixels.set([data[index * 3] ?? 0, data[index * 3 + 1] ?? 0, data[index * 3 + 2] ?? 0], index * 4);
  }
  return { width, height, data: pixels };
}

describe('a PNG of the screen', () => {
  it('a PNG of the screen has exactly the pixels of the frame', () => {
    const data = Uint8Array.from({ length: 5 * 3 * 4 }, (_, index) => (index % 4 === 3 ? 255 : (index * 37) % 256));
    expect(read({ kind: 'pixels', width: 5, height: 3, data })).toEqual({ width: 5, height: 3, data });
  });

  it('a PNG of a page of characters shows it as a terminal would, with a QR that decodes', async () => {
    const renderer = await openRenderer(
      { kind: 'characters', columns: 80, rows: 24, halfBlocks: true },
      { cacheDir: '' },
    );
    const qrCheck = renderer.checkQr(QR_CODE);
    if (!qrCheck.ok) throw new Error(qrCheck.reason);
    const picture = read(renderer.render(PAYMENT));
    expect(picture.width).toBe(640);
    expectDecodes(picture, QR_CODE);
    expectGeometry(picture, { x: 0, y: 0 }, { ...qrCheck, modulePixels: 8 });
  });

  it('a PNG of a page of characters draws each letter as itself', () => {
    const rows = (char: string) => Array.from(bitmapGlyph(char), (bits) => bits.toString(2).padStart(8, '0'));
    expect(rows('L').map((row) => row.replaceAll('0', ' ').replaceAll('1', '#').trimEnd())).toEqual([
      '',
      '',
      ' #',
      ' #',
      ' #',
      ' #',
      ' #',
      ' #',
      ' #',
      ' #',
      ' ######',
      '',
      '',
    ]);
    expect(rows('ậ')).not.toEqual(rows('â'));
    expect(rows('☃')).toEqual(rows('?'));
  });
});
