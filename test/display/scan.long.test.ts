import { describe, expect, it } from 'vitest';
import { openRenderer } from '../../src/device/display/render.ts';
import { DISTORTIONS, type Distortion } from './distortions.ts';
import { glyphCache } from './pictures.ts';
import { readShare } from './scanning.ts';
import { PAYMENT, QR_CODE } from './scenes.ts';

const source = glyphCache();

/** The least share that is read of the photographs with one thing wrong. */
const FAMILIES: readonly (readonly [string, (distortion: Distortion) => boolean, number])[] = [
  ['straight', ({ name }) => name === 'straight', 1],
  ['blur', ({ name }) => name.startsWith('blur'), 0.5],
  ['rotation', ({ name }) => name.startsWith('turned'), 0.75],
  ['keystone', ({ name }) => name.startsWith('keystone'), 0.25],
  ['noise', ({ name }) => name.startsWith('noise'), 0.25],
  ['bloom', ({ name }) => name.endsWith('bloom'), 0.25],
  ['all at once', ({ name }) => name === 'in the hand', 0],
];

async function paymentOn(width: number, height: number) {
  const renderer = await openRenderer({ kind: 'pixels', width, height }, source);
  const screen = renderer.render(PAYMENT);
  if (screen.kind !== 'pixels') throw new Error('not pixels');
  return screen;
}

describe('photographs of a payment', () => {
  it.each([
    [1280, 720, 0.7],
    [800, 480, 0.7],
    [480, 800, 0.7],
    [480, 320, 0.7],
    [320, 240, 0.7],
    [240, 240, 0.7],
    [128, 128, 0.7],
    [128, 64, 0.7],
    [64, 128, 0.75],
    [64, 64, 0.7],
  ])('on %i x %i are read in at least a share of %d, and some of every kind', async (width, height, least) => {
    const screen = await paymentOn(width, height);
    const shares = FAMILIES.map(([name, belongs, familyLeast]) => {
      const distortions = DISTORTIONS.filter(belongs);
      return { name, familyLeast, count: distortions.length, ...readShare(screen, QR_CODE, distortions) };
    });
    const weighed = shares.reduce((sum, { share, count }) => sum + share * count, 0);
    expect(shares.reduce((sum, { count }) => sum + count, 0)).toBe(DISTORTIONS.length);
    expect(weighed / DISTORTIONS.length).toBeGreaterThanOrEqual(least);
    expect(shares.filter(({ share, familyLeast }) => share < familyLeast)).toEqual([]);
  });

  it('photographs of a payment are not read where noise is stronger than the light of the code', async () => {
    const screen = await paymentOn(128, 64);
    const dim = { ...screen, data: screen.data.map((byte, at) => (at % 4 === 3 ? byte : byte >> 5)) };
    const strong = DISTORTIONS.filter(({ noise }) => noise !== undefined);
    expect(readShare(dim, QR_CODE, strong).share).toBe(0);
  });
});
