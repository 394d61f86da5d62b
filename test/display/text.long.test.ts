import { describe, expect, it } from 'vitest';
import { cleanText } from '../../src/device/display/charset.ts';
import type { Surface } from '../../src/device/display/contract.ts';
import { openRenderer } from '../../src/device/display/render.ts';
import { glyphCache } from './pictures.ts';

const source = glyphCache();

describe('odd texts on a screen', () => {
  const odd = 'Nguye\u0302\u0303n 👩🏽‍🚀 \u202eמזל\u202c \u200b\u0301ﷺ \ud800 Ａ\u20e3';

  it.each<Surface>([
    { kind: 'pixels', width: 800, height: 480 },
    { kind: 'pixels', width: 64, height: 64 },
    { kind: 'characters', columns: 80, rows: 24, halfBlocks: true },
    { kind: 'characters', columns: 20, rows: 2, halfBlocks: false },
  ])('look like the same texts cleaned: %j', async (surface) => {
    const renderer = await openRenderer(surface, source);
    const frameOf = (content: string) =>
      renderer.render({ kind: 'paid', transactionId: 't1', online: true, amount: 1, content, holder: null });
    const given = frameOf(odd);
    expect(cleanText(odd)).toMatch(/^Nguyễn [? A]+$/);
    expect(frameOf(cleanText(odd))).toEqual(given);
  });
});
