import { describe, expect, it } from 'vitest';
import type { Item } from '../../src/device/display/layout/items.ts';
import { layoutPixels } from '../../src/device/display/layout/pixels.ts';
import { fitBesideWords } from '../../src/device/display/layout/room.ts';
import { openRenderer, openStage } from '../../src/device/display/render.ts';
import { expectDecodes, expectGeometry, glyphCache, textPicture } from './pictures.ts';
import { ENROL, payloadOf } from './scenes.ts';

const source = glyphCache();
/** Those that a payment's QR shares with texts, and two where it would have the screen to itself. */
const LARGE: readonly (readonly [number, number])[] = [
  [1280, 720],
  [800, 480],
  [480, 800],
  [480, 320],
  [320, 240],
  [240, 240],
];
const SMALL: readonly (readonly [number, number])[] = [
  [128, 128],
  [128, 64],
  [64, 128],
  [64, 64],
];

async function itemsOf(width: number, height: number, url = ENROL.url): Promise<Item[]> {
  const surface = { kind: 'pixels', width, height } as const;
  const fit = fitBesideWords(surface, url);
  return layoutPixels({ ...ENROL, url }, fit.ok ? fit.qr : undefined, await openStage(surface, source));
}

const saidIn = (items: readonly Item[]) => items.flatMap((item) => (item.kind === 'text' ? [item.text] : []));

async function frameOf(width: number, height: number) {
  const frame = (await openRenderer({ kind: 'pixels', width, height }, source)).render(ENROL);
  if (frame.kind !== 'pixels') throw new Error('not pixels');
  return frame;
}

describe('a box that waits to be enrolled', () => {
  it.each(LARGE)(
    'an enrolment screen of %i x %i says what this is, the code and the device, beside a QR that scans',
    async (width, height) => {
      const items = await itemsOf(width, height);
      const said = saidIn(items);
      expect(said).toContain('Kích hoạt thiết bị');
      expect(said.join(' ')).toMatch(/7KQF[- ]2M8C[- ]4TZN/);
      expect(said).toContain('VVB000001');
      const code = items.find((item) => item.kind === 'qr');
      if (code === undefined) throw new Error('no QR');
      const frame = await frameOf(width, height);
      expectDecodes(frame, ENROL.url);
      expectGeometry(frame, code.box, code.qr);
    },
  );

  it.each(SMALL)('an enrolment screen of %i x %i says the code and the device, without a QR', async (width, height) => {
    const items = await itemsOf(width, height);
    expect(saidIn(items).join(' ')).toMatch(/7KQF[- ]2M8C[- ]4TZN.*VVB000001/);
    expect(items.some((item) => item.kind === 'qr')).toBe(false);
  });

  it.each([...LARGE, ...SMALL])(
    'an enrolment screen of %i x %i says the code also where its QR would fill it',
    async (width, height) => {
      for (const length of [100, 300, 700, 2_900]) {
        const said = saidIn(await itemsOf(width, height, payloadOf(length)));
        expect(said.join(' '), `${length} characters`).toMatch(/7KQF[- ]2M8C[- ]4TZN/);
      }
    },
  );

  it.each([
    [80, 24, true],
    [60, 40, true],
    [40, 40, true],
    [40, 12, false],
  ])('says the code in %i columns and %i rows (with a QR: %s)', async (columns, rows, hasQr) => {
    const frame = (await openRenderer({ kind: 'characters', columns, rows, halfBlocks: true }, source)).render(ENROL);
    const text = frame.kind === 'characters' ? textPicture(frame) : '';
    expect(text).toContain(ENROL.code);
    expect(text).toContain('VVB000001');
    expect(text.includes('█')).toBe(hasQr);
  });

  it.each([
    [20, 4],
    [20, 2],
    [16, 2],
  ])('says the code and the device in %i columns and %i rows of a customer display', async (columns, rows) => {
    const frame = (await openRenderer({ kind: 'characters', columns, rows, halfBlocks: false }, source)).render(ENROL);
    const text = frame.kind === 'characters' ? textPicture(frame) : '';
    expect(text).toMatch(/^7KQF-2M8C-4TZN\nVVB000001$/m);
  });
});
