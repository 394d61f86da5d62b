import { spawnSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import jsqrModule from 'jsqr';
import decodeQr from 'qr/decode.js';
import { afterAll, beforeAll, expect } from 'vitest';
import type { CharacterFrame, PixelFrame } from '../../src/device/display/contract.ts';
import { faceName } from '../../src/device/display/layout/fonts/faces.ts';
import type { Item } from '../../src/device/display/layout/items.ts';
import type { Qr } from '../../src/device/display/qr.ts';

/** What a picture must be for the decoders: 4 bytes a pixel. */
export type Picture = Pick<PixelFrame, 'width' | 'height' | 'data'>;

// The module is CommonJS: its function is the default of its default.
const jsqr = jsqrModule.default;

/** Both decoders, which share no code with each other or with the encoder, read exactly this. */
export function expectDecodes(picture: Picture, payload: string): void {
  const { width, height } = picture;
  expect(decodeQr({ width, height, data: picture.data }), 'qr').toBe(payload);
  expect(jsqr(new Uint8ClampedArray(picture.data), width, height)?.data, 'jsqr').toBe(payload);
}

/** What zbar reads in a picture file. */
export function zbarReads(path: string): string {
  const run = spawnSync('zbarimg', ['--quiet', '--raw', path], { encoding: 'utf8' });
  return run.stdout.trimEnd();
}

/** Red, green and blue of one pixel as 0xRRGGBB. */
export function pixelAt({ width, data }: Picture, x: number, y: number): number {
  const at = (y * width + x) * 4;
  return ((data[at] ?? 0) << 16) | ((data[at + 1] ?? 0) << 8) | (data[at + 2] ?? 0);
}

/**
 * The code at `x`, `y` in the picture is black on `light` in whole squares of `modulePixels`, with a light margin of
 * `quietModules` around it, and finder patterns in three corners.
 */
export function expectGeometry(
  picture: Picture,
  at: { x: number; y: number },
  code: { modules: number; modulePixels: number; quietModules: number },
  light = 0xffffff,
): void {
  const side = code.modules + 2 * code.quietModules;
  const wrong: string[] = [];
  for (let row = 0; row < side; row += 1) {
    for (let column = 0; column < side; column += 1) {
      const colors = new Set<number>();
      for (let dy = 0; dy < code.modulePixels; dy += 1) {
        for (let dx = 0; dx < code.modulePixels; dx += 1) {
          colors.add(pixelAt(picture, at.x + column * code.modulePixels + dx, at.y + row * code.modulePixels + dy));
        }
      }
      const [color = -1] = colors;
      const quiet = Math.min(row, column, side - 1 - row, side - 1 - column) < code.quietModules;
      if (colors.size !== 1 || !(color === light || (color === 0 && !quiet))) wrong.push(`${column},${row}`);
    }
  }
  expect(wrong).toEqual([]);
  const finder = (column: number, row: number) =>
    pixelAt(picture, at.x + column * code.modulePixels, at.y + row * code.modulePixels);
  const first = code.quietModules;
  const last = code.quietModules + code.modules - 1;
  expect([finder(first, first), finder(last, first), finder(first, last)]).toEqual([0, 0, 0]);
}

/** A picture as text, one line per item. */
export function describePicture(items: readonly Item[]): string {
  return items.map((item) => `${describeItem(item)}\n`).join('');
}

function describeItem(item: Item): string {
  const { x, y, width, height } = item.box;
  const where = `${item.kind} ${x},${y} ${width}x${height}`;
  switch (item.kind) {
    case 'rect':
      return `${where} radius ${item.radius} ${hex(item.color)}`;
    case 'text':
      return `${where} ${faceName(item.face.spec)} ${hex(item.ink)} "${item.text}"`;
    case 'icon':
      return `${where} ${item.name} ${hex(item.stroke)} on ${hex(item.disc)}`;
    case 'qr':
      return `${where} ${describeQr(item.qr)}, black on ${hex(item.light)}`;
  }
}

function describeQr({ version, ecc, modules, modulePixels, quietModules }: Qr): string {
  return `version ${version} ${ecc}, ${modules} modules of ${modulePixels} px, quiet ${quietModules}`;
}

function hex(color: number): string {
  return `#${color.toString(16).padStart(6, '0')}`;
}

/** A page of characters as plain text; two modules in a cell as `█`, `▀`, `▄` or a space. */
export function textPicture(frame: CharacterFrame): string {
  const chars = frame.cells.map(({ char, ink, paper }) =>
    char === '▀' ? (ink === 0 ? (paper === 0 ? '█' : '▀') : paper === 0 ? '▄' : ' ') : char,
  );
  return Array.from({ length: frame.rows }, (_, row) => {
    const line = chars.slice(row * frame.columns, (row + 1) * frame.columns).join('');
    return `${line.trimEnd()}\n`;
  }).join('');
}

/** Compares with `test/display/goldens/{name}.txt`, or writes that file when PAYBOX_UPDATE_GOLDENS is set. */
export async function expectGolden(name: string, text: string): Promise<void> {
  const path = join(import.meta.dirname, 'goldens', `${name}.txt`);
  if (process.env.PAYBOX_UPDATE_GOLDENS) await writeFile(path, text);
  expect(text).toBe(await readFile(path, 'utf8'));
}

/** A folder for drawn letters, shared by the tests of one file: drawing them takes a moment. */
export function glyphCache(): { cacheDir: string } {
  const source = { cacheDir: '' };
  beforeAll(async () => {
    source.cacheDir = await mkdtemp(join(tmpdir(), 'paybox-glyphs-'));
  });
  afterAll(() => rm(source.cacheDir, { recursive: true, force: true }));
  return source;
}
