import { describe, expect, it } from 'vitest';
import type { Frame, Surface } from '../../../src/device/display/contract.ts';
import { openRenderer } from '../../../src/device/display/render.ts';
import type { Scene } from '../../../src/device/scene.ts';
import { expectDecodes, expectGolden, glyphCache, textPicture } from '../pictures.ts';
import { DUE, MARKED, PAYMENT, payloadOf, SCENES } from '../scenes.ts';

const source = glyphCache();
const pixels = (width: number, height: number): Surface => ({ kind: 'pixels', width, height });
const characters = (columns: number, rows: number, halfBlocks: boolean): Surface => ({
  ...{ kind: 'characters', columns, rows, halfBlocks },
});

const PAGES = [
  [80, 24, true],
  [60, 40, true],
  [40, 12, true],
  [30, 60, true],
  [20, 4, false],
  [20, 2, false],
  [16, 2, false],
] as const;
const PICTURES = [
  [800, 480],
  [480, 320],
  [320, 240],
  [240, 240],
  [480, 800],
  [128, 64],
  [64, 128],
  [64, 64],
] as const;

function textOf(frame: Frame): string {
  if (frame.kind !== 'characters') throw new Error('not characters');
  return textPicture(frame);
}

const marked = (scene: Scene): Scene =>
  scene.kind === 'setup' || scene.kind === 'blank' ? scene : { ...scene, sandbox: true };

describe('AGT-15 the mark of a sandbox', () => {
  it.each(PAGES)(
    'the mark of a sandbox is on every page of %i x %i characters (half blocks: %s), and on none without',
    async (...size) => {
      const renderer = await openRenderer(characters(...size), source);
      for (const [name, scene] of Object.entries(MARKED)) {
        const text = textOf(renderer.render(scene));
        const [, rows] = size;
        const isFull = rows < 4 && scene.kind === 'enrol';
        expect(text.includes('SANDBOX'), `${name}\n${text}`).toBe(!isFull);
      }
      for (const scene of Object.values(SCENES)) expect(textOf(renderer.render(scene))).not.toContain('SANDBOX');
    },
  );

  it.each(PAGES)(
    'a page with a mark of %i x %i characters is as agreed (half blocks: %s)',
    async (columns, rows, halfBlocks) => {
      const renderer = await openRenderer(characters(columns, rows, halfBlocks), source);
      const scenes = Object.entries(MARKED).filter(([name]) => AGREED.test(name));
      const pages = scenes.map(([name, scene]) => `== ${name}\n${textOf(renderer.render(scene))}`);
      await expectGolden(`${columns}x${rows}-characters-sandbox`, pages.join('\n'));
    },
  );

  it.each(PICTURES)(
    'the mark of a sandbox leaves the QR of %i x %i its modules and quiet zone, and both decoders read it',
    async (...size) => {
      const renderer = await openRenderer(pixels(...size), source);
      for (let length = 60; length <= 260; length += 20) {
        const qrCode = payloadOf(length);
        const plain = renderer.checkQr(qrCode);
        const beside = renderer.checkQr(qrCode, true);
        if (!plain.ok || !beside.ok) throw new Error('no room');
        expect(beside).toMatchObject({ modulePixels: plain.modulePixels, quietModules: plain.quietModules });
        for (const online of [true, false]) {
          const frame = renderer.render(marked({ ...PAYMENT, qrCode, online }));
          if (frame.kind !== 'pixels') throw new Error('not pixels');
          expectDecodes(frame, qrCode);
        }
      }
    },
  );

  it('the mark of a sandbox has a row of a terminal that the QR would fill, where a weaker code is as large', async () => {
    const renderer = await openRenderer(characters(60, 27, true), source);
    const full = [110, 115, 120, 125, 130].map(payloadOf).filter((qrCode) => {
      const check = renderer.checkQr(qrCode);
      return check.ok && check.modules === 45 && check.ecc !== 'L';
    });
    expect(full).not.toEqual([]);
    for (const qrCode of full) {
      expect(renderer.checkQr(qrCode, true)).toMatchObject({ ok: true, modules: 41, quietModules: 4 });
      expect(textOf(renderer.render(marked({ ...PAYMENT, qrCode })))).toContain('SANDBOX');
    }
  });
});

describe('AGT-5 a payment of another amount than its order asked for', () => {
  it.each(PAGES)(
    'a payment of another amount than its order asked for says so on %i x %i characters (half blocks: %s)',
    async (columns, rows, halfBlocks) => {
      const renderer = await openRenderer(characters(columns, rows, halfBlocks), source);
      const said = (name: string) => textOf(renderer.render(DUE[name] ?? PAYMENT));
      expect(said('paid, something missing')).toMatch(/(Còn thiếu|Thiếu|Con thieu|Thieu) 20\.000 [₫d]/);
      expect(said('paid, too much')).toMatch(/(Thừa|Thua) 5\.000 [₫d]/);
      expect(said('paid, much missing')).toMatch(/([Tt]hiếu|[Tt]hieu)( 1\.234\.567\.888 [₫d]|\s*$)/m);
    },
  );
});

/** The scenes whose pages are compared: the others have the mark where these have it. */
const AGREED = /^(connecting|idle|idle offline|payment|payment, everything long|paid|paid, .*|fault|history), sandbox$/;
