import sharp from 'sharp';
import { expect, it } from 'vitest';
import { gifOf } from '../../src/bench/engine/reports/gif.ts';
import type { TranscriptEntry } from '../../src/bench/engine/reports/transcript.ts';

const picture = (background: string, width = 960, height = 480) =>
  sharp({ create: { width, height, channels: 4, background } })
    .png()
    .toBuffer();
const screen = (title: string, atMs: number, picture: Uint8Array): TranscriptEntry => ({
  ...{ atMs, kind: 'screen', title, picture, qr: null },
});

it('the screens of a run are an animation, boxes side by side, for as long as they were seen', async () => {
  const [red, green, blue] = [await picture('#f00'), await picture('#0f0'), await picture('#00f', 128, 64)];
  const gif = await gifOf([
    {
      entries: [
        screen('A', 0, red),
        screen('B', 1_000, blue),
        { atMs: 1_500, kind: 'step', title: 'wait' },
        screen('A', 1_010, green),
        screen('A, difference to a.png', 1_020, blue),
        screen('A', 90_000, red),
      ],
    },
  ]);
  const { pages, delay, width, pageHeight } = await sharp(gif, { animated: true }).metadata();
  expect({ pages, delay, width, pageHeight }).toEqual({
    ...{ pages: 4, delay: [1_000, 300, 2_000, 3_000], width: 960, pageHeight: 240 },
  });
  const seen = [];
  for (let page = 0; page < 4; page += 1) {
    const { data, info } = await sharp(gif, { page }).removeAlpha().raw().toBuffer({ resolveWithObject: true });
    const at = (x: number) =>
      [...data.subarray((30 * info.width + x) * 3).subarray(0, 3)].map((it) => Math.round(it / 255));
    seen.push([at(100), at(500)].map((it) => it.join('')));
  }
  expect(seen).toEqual([
    ['100', '000'],
    ['100', '001'],
    ['010', '001'],
    ['100', '001'],
  ]);
});

it('a run without a screen makes no animation', async () => {
  expect(await gifOf([{ entries: [{ atMs: 0, kind: 'step', title: 'wait' }] }])).toBeUndefined();
});
