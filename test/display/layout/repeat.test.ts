import { describe, expect, it } from 'vitest';
import { withoutAccents } from '../../../src/device/display/charset.ts';
import type { Surface } from '../../../src/device/display/contract.ts';
import { layoutPixels } from '../../../src/device/display/layout/pixels.ts';
import { openRenderer, openStage } from '../../../src/device/display/render.ts';
import { pageOf } from '../../../src/device/display/words.ts';
import type { Scene } from '../../../src/device/scene.ts';
import { glyphCache, textPicture } from '../pictures.ts';
import { DUE, SCENES } from '../scenes.ts';

const source = glyphCache();
const repeats = Object.entries({ ...SCENES, ...DUE }).flatMap(([name, scene]) =>
  scene.kind === 'repeat' ? [[name, scene] as const] : [],
);
const marked = repeats.map(([name, scene]) => [`${name}, sandbox`, { ...scene, sandbox: true as const }] as const);
const all = [...repeats, ...marked];
/** These words say that it is a repetition. */
const AGAIN = /[Nn]hắc lại|lại \d\d:\d\d|[Nn]hac lai|lai \d\d:\d\d/;

const textsOn = async (scene: Scene, surface: Surface) => {
  if (surface.kind === 'pixels') {
    const items = layoutPixels(scene, undefined, await openStage(surface, source));
    return items.flatMap((item) => (item.kind === 'text' ? [item.text] : [])).join(' ');
  }
  const frame = (await openRenderer(surface, source)).render(scene);
  return frame.kind === 'characters' ? textPicture(frame) : Object.values(frame).join(' ');
};

describe('a payment that is shown again', () => {
  it.each([
    ...[
      [800, 480],
      [480, 320],
      [320, 240],
      [240, 240],
      [128, 128],
      [128, 64],
      [64, 128],
      [64, 64],
      [96, 32],
      [64, 32],
    ],
  ])(
    'AGT-17 a repeated payment says so, and when it was paid, in a picture of %i x %i',
    async (width = 0, height = 0) => {
      for (const [name, scene] of all) {
        const text = await textsOn(scene, { kind: 'pixels', width, height });
        expect([name, text]).toEqual([name, expect.stringMatching(AGAIN)]);
        expect([name, text]).toEqual([name, expect.stringMatching(/(09:05|00:30)/)]);
      }
    },
  );

  it('AGT-17 a repeated payment has another ground and mark than a new one', () => {
    const [again, paid] = [pageOf(SCENES.repeat as Scene), pageOf(SCENES.paid as Scene)];
    expect([again.tone, again.icon]).not.toEqual([paid.tone, paid.icon]);
    expect(again.tone).not.toBe('good');
  });

  it.each([
    [20, 4, false],
    [16, 2, false],
    [20, 2, false],
    [20, 1, false],
    [16, 1, false],
    [80, 24, true],
    [40, 12, true],
    [24, 3, true],
    [24, 2, true],
  ])('AGT-17 a repeated payment says so on %i x %i characters (half blocks: %s)', async (columns, rows, halfBlocks) => {
    for (const [name, scene] of repeats) {
      const text = await textsOn(scene, { kind: 'characters', columns, rows, halfBlocks });
      expect([name, text]).toEqual([name, expect.stringMatching(AGAIN)]);
    }
  });

  it('AGT-17 a repeated payment says so on a panel that draws its own texts, in its title', async () => {
    for (const accents of [true, false]) {
      const frame = (await openRenderer({ kind: 'panel', qr: null, accents }, source)).render(SCENES.repeat as Scene);
      const title = 'Nhắc lại lúc 09:05 02/01';
      expect(frame).toMatchObject({ kind: 'panel', screen: 'repeat', title: accents ? title : withoutAccents(title) });
    }
  });

  it('AGT-17 a repeated payment says why it is not announced', async () => {
    const old = SCENES['repeat of an old one'] as Scene;
    const surfaces: Surface[] = [
      { kind: 'pixels', width: 320, height: 240 },
      { kind: 'pixels', width: 128, height: 64 },
      { kind: 'characters', columns: 20, rows: 4, halfBlocks: false },
      { kind: 'characters', columns: 40, rows: 12, halfBlocks: true },
      { kind: 'panel', qr: null, accents: true },
    ];
    for (const surface of surfaces) {
      const text = (await textsOn(old, surface)).replaceAll(/\s+/g, ' ');
      expect(withoutAccents(text)).toContain('Da cu, khong doc lai');
    }
  });
});
