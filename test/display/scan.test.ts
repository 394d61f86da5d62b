import { describe, expect, it } from 'vitest';
import { openRenderer } from '../../src/display/render.ts';
import { DISTORTIONS } from './distortions.ts';
import { glyphCache } from './pictures.ts';
import { readShare } from './scanning.ts';
import { PAYMENT, QR_CODE } from './scenes.ts';

const source = glyphCache();

describe('photographs of a payment', () => {
  it.each([
    [800, 480, 0.8],
    [320, 240, 0.8],
    [128, 64, 0.7],
    [64, 64, 0.7],
  ])('on %i x %i are read in at least a share of %d of all cases', async (width, height, least) => {
    const renderer = await openRenderer({ kind: 'pixels', width, height }, source);
    const screen = renderer.render(PAYMENT);
    if (screen.kind !== 'pixels') throw new Error('not pixels');
    const { share, unread } = readShare(screen, QR_CODE);
    expect(share, unread.join(', ')).toBeGreaterThanOrEqual(least);
    expect(unread.filter((name) => name === 'straight' || name.startsWith('turned'))).toEqual([]);
  });

  it('are not read where noise is stronger than the light of the code', async () => {
    const renderer = await openRenderer({ kind: 'pixels', width: 128, height: 64 }, source);
    const screen = renderer.render(PAYMENT);
    if (screen.kind !== 'pixels') throw new Error('not pixels');
    const dim = { ...screen, data: screen.data.map((byte, at) => (at % 4 === 3 ? byte : byte >> 5)) };
    const strong = DISTORTIONS.filter(({ noise }) => noise !== undefined);
    expect(readShare(dim, QR_CODE, strong).share).toBe(0);
  });
});
