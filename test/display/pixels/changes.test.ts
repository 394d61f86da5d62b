import { describe, expect, it } from 'vitest';
import type { PixelFrame } from '../../../src/device/display/contract.ts';
import { layoutPixels } from '../../../src/device/display/layout/pixels.ts';
import { fitOn } from '../../../src/device/display/layout/room.ts';
import { createCanvas, frameOf } from '../../../src/device/display/pixels/canvas.ts';
import { changedBox } from '../../../src/device/display/pixels/changes.ts';
import { paint, type Sheet } from '../../../src/device/display/pixels/paint.ts';
import { openRenderer, openStage } from '../../../src/device/display/render.ts';
import type { Scene } from '../../../src/device/scene.ts';
import { fc } from '../../support/properties.ts';
import { glyphCache } from '../pictures.ts';
import { anyScene, PAYMENT, SCENES } from '../scenes.ts';

const source = glyphCache();

function pixels(width: number, height: number, set: readonly (readonly [number, number])[]): PixelFrame {
  const canvas = createCanvas(width, height);
  for (const [x, y] of set) canvas.words[y * width + x] = 0xff00ff00;
  return frameOf(canvas);
}

describe('what changed between two frames', () => {
  it('the change between two frames is the smallest rectangle with every pixel that differs', () => {
    const place = fc.tuple(fc.integer({ min: 0, max: 8 }), fc.integer({ min: 0, max: 5 }));
    fc.assert(
      fc.property(fc.array(place, { minLength: 1, maxLength: 5 }), (places) => {
        const xs = places.map(([x]) => x);
        const ys = places.map(([, y]) => y);
        const x = Math.min(...xs);
        const y = Math.min(...ys);
        const box = { x, y, width: Math.max(...xs) - x + 1, height: Math.max(...ys) - y + 1 };
        expect(changedBox(pixels(9, 6, []), pixels(9, 6, places))).toEqual(box);
      }),
    );
  });

  it('the change between two frames is nothing for the same picture, and everything for the first or one of another size', () => {
    const frame = pixels(9, 6, [[3, 3]]);
    expect(changedBox(frame, pixels(9, 6, [[3, 3]]))).toBeUndefined();
    expect(changedBox(undefined, frame)).toEqual({ x: 0, y: 0, width: 9, height: 6 });
    expect(changedBox(pixels(6, 9, []), frame)).toEqual({ x: 0, y: 0, width: 9, height: 6 });
  });

  it('the change of a second is a small part of the screen, and never the code', async () => {
    const renderer = await openRenderer({ kind: 'pixels', width: 800, height: 480 }, source);
    const before = renderer.render(PAYMENT);
    const after = renderer.render({ ...PAYMENT, secondsLeft: PAYMENT.secondsLeft - 1 });
    if (before.kind !== 'pixels' || after.kind !== 'pixels') throw new Error('not pixels');
    const box = changedBox(before, after);
    expect((box?.width ?? 0) * (box?.height ?? 0)).toBeLessThan((800 * 480) / 200);
    expect(box?.x).toBeGreaterThan(480);
  });
});

describe('painting only what changed', () => {
  it.each([
    [800, 480],
    [240, 240],
    [128, 64],
  ])('on %i x %i leaves the same picture as painting all of it', async (width, height) => {
    const stage = await openStage({ kind: 'pixels', width, height }, source);
    const itemsOf = (scene: Scene) => {
      const fit = scene.kind === 'payment' ? fitOn(stage.surface, scene.qrCode) : undefined;
      return layoutPixels(scene, fit?.ok ? fit.qr : undefined, stage);
    };
    const next = fc.oneof(anyScene, fc.constantFrom(...Object.values(SCENES)), fc.integer({ min: 0, max: 400 }));
    fc.assert(
      fc.property(fc.array(next, { minLength: 2, maxLength: 8 }), (steps) => {
        const sheet: Sheet = { canvas: createCanvas(width, height), items: [] };
        let last: Scene = PAYMENT;
        for (const step of steps) {
          last = typeof step === 'number' ? { ...(last.kind === 'payment' ? last : PAYMENT), secondsLeft: step } : step;
          paint(itemsOf(last), sheet);
        }
        const fresh: Sheet = { canvas: createCanvas(width, height), items: [] };
        expect(Buffer.compare(paint(sheet.items, fresh).data, frameOf(sheet.canvas).data)).toBe(0);
      }),
      { numRuns: 25 },
    );
  });

  it('painting only what changed touches nothing but the pill of the time left', async () => {
    const stage = await openStage({ kind: 'pixels', width: 800, height: 480 }, source);
    const fit = fitOn(stage.surface, PAYMENT.qrCode);
    if (!fit.ok) throw new Error(fit.reason);
    const sheet: Sheet = { canvas: createCanvas(800, 480), items: [] };
    paint(layoutPixels(PAYMENT, fit.qr, stage), sheet);
    sheet.canvas.words.fill(0);
    paint(layoutPixels({ ...PAYMENT, secondsLeft: 271 }, fit.qr, stage), sheet);
    const touched = sheet.canvas.words.reduce((count, word) => count + (word === 0 ? 0 : 1), 0);
    expect(touched).toBeGreaterThan(100);
    expect(touched).toBeLessThan((800 * 480) / 40);
  });
});
