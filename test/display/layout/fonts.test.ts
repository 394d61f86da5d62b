import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { CHARSET, FIGURES } from '../../../src/device/display/charset.ts';
import type { Face, FaceSpec } from '../../../src/device/display/layout/fonts/faces.ts';
import { openFaces } from '../../../src/device/display/layout/fonts/glyph-sheets.ts';
import { specsOf, typographyFor } from '../../../src/device/display/layout/typography.ts';
import { temporaryFolder } from '../../support/net.ts';

const SPECS: readonly FaceSpec[] = [
  { weight: 400, sizePx: 16, charset: 'text' },
  { weight: 700, sizePx: 40, charset: 'figures' },
];

function inkOf({ alpha, glyphs }: Face, char: string): number {
  const glyph = glyphs.get(char);
  if (glyph === undefined) return -1;
  return alpha.subarray(glyph.offset, glyph.offset + glyph.width * glyph.height).reduce((sum, each) => sum + each, 0);
}

beforeEach(() => {
  vi.stubEnv('PAYBOX_GLYPH_CACHE', '');
});
afterEach(() => {
  vi.unstubAllEnvs();
});

describe('drawn letters', () => {
  it('drawn letters are all there, each with ink of its own', async () => {
    const [text, figures] = await openFaces(SPECS, { cacheDir: await temporaryFolder() });
    if (text === undefined || figures === undefined) throw new Error('a face is missing');
    expect([...text.glyphs.keys()].join('')).toBe(CHARSET);
    expect([...figures.glyphs.keys()].join('')).toBe(FIGURES);
    const blank = [...CHARSET].filter((char) => char !== ' ' && inkOf(text, char) <= 255);
    expect(blank).toEqual([]);
    expect(inkOf(text, 'ậ')).toBeGreaterThan(inkOf(text, 'a'));
    expect(text.glyphs.get('ậ')?.height).toBeGreaterThan(text.glyphs.get('a')?.height ?? 0);
    for (const { advance, width } of text.glyphs.values()) expect(width).toBeLessThan(advance + 16);
  });

  it('drawn letters are read from the cache, and drawn anew where that is damaged', async () => {
    const cacheDir = join(await temporaryFolder(), 'cache');
    const first = await openFaces(SPECS, { cacheDir });
    const [name = ''] = await readdir(cacheDir);
    const path = join(cacheDir, name);
    const intact = await readFile(path);
    const flipped = Buffer.from(intact);
    flipped.writeUInt8((flipped.at(-9) ?? 0) ^ 1, flipped.length - 9);
    for (const damaged of [flipped, intact.subarray(0, 1000), Buffer.alloc(0), Buffer.alloc(intact.length)]) {
      await writeFile(path, damaged);
      expect(await openFaces(SPECS, { cacheDir })).toEqual(first);
      expect(Buffer.compare(await readFile(path), intact)).toBe(0);
    }
    expect(await readdir(cacheDir)).toEqual([name]);
  });

  it('drawn letters are drawn once for all boxes that share one cache', async () => {
    const folder = await temporaryFolder();
    vi.stubEnv('PAYBOX_GLYPH_CACHE', join(folder, 'shared'));
    const drawn = await openFaces(SPECS, { cacheDir: join(folder, 'one') });
    expect(await openFaces(SPECS, { cacheDir: join(folder, 'other') })).toEqual(drawn);
    expect(await readdir(folder)).toEqual(['shared']);
    expect(await readdir(join(folder, 'shared'))).toHaveLength(1);
  });

  it('letters that the cache cannot store are drawn all the same, and leave nothing behind', async () => {
    const folder = await temporaryFolder();
    await writeFile(join(folder, 'file'), '');
    const kept = await openFaces(SPECS, { cacheDir: join(folder, 'cache') });
    expect(await openFaces(SPECS, { cacheDir: join(folder, 'file') })).toEqual(kept);
    expect((await readdir(folder)).sort()).toEqual(['cache', 'file']);
  });

  it('drawn letters are not waited for once the program ends', async () => {
    const opening = openFaces(SPECS, { cacheDir: await temporaryFolder(), signal: AbortSignal.abort() });
    await expect(opening).rejects.toMatchObject({ code: 'FONT_MISSING' });
  });

  it('drawn letters are the same for a screen every time, and few', () => {
    expect(typographyFor(800, 480)).toEqual(typographyFor(800, 480));
    for (const [width, height] of [
      [800, 480],
      [64, 64],
      [4096, 4096],
    ] as const) {
      const specs = specsOf(typographyFor(width, height));
      expect(specs.length).toBeLessThanOrEqual(20);
      expect(Math.min(...specs.map(({ sizePx }) => sizePx))).toBeGreaterThanOrEqual(10);
    }
  });
});
