import { describe, expect, it } from 'vitest';
import { readQrInPhotograph } from '../../src/bench/engine/pictures.ts';
import { DISTORTIONS, photograph } from '../display/distortions.ts';
import { QR_CODE } from '../display/scenes.ts';
import { paymentOn } from './probe-fixture.ts';

describe('a photograph of a screen', () => {
  it.each([
    [800, 480],
    [320, 240],
    [128, 64],
  ])('of %i x %i is found and rectified in at least nine of ten', async (width, height) => {
    const screen = await paymentOn(width, height);
    const unread: string[] = [];
    for (const [seed, distortion] of DISTORTIONS.entries()) {
      if ((await readQrInPhotograph(photograph(screen, distortion, seed + 1))) !== QR_CODE)
        unread.push(distortion.name);
    }
    process.stdout.write(
      `${width}x${height}: ${DISTORTIONS.length - unread.length} of ${DISTORTIONS.length} read; not ${unread.join(', ')}\n`,
    );
    expect(unread.length / DISTORTIONS.length).toBeLessThanOrEqual(0.1);
  });
});
