import { describe, expect, it } from 'vitest';
import type { Frame, PixelFrame } from '../../src/device/display/contract.ts';
import { openRenderer } from '../../src/device/display/render.ts';
import { expectDecodes, expectGeometry, glyphCache, pixelAt } from './pictures.ts';
import { PAYMENT, payloadOf, SCENES } from './scenes.ts';

const source = glyphCache();
const LENGTHS = [94, 142, 220, 280];

function pixels(frame: Frame): PixelFrame {
  if (frame.kind !== 'pixels') throw new Error('not pixels');
  return frame;
}

/** The corner of the code's quiet zone: the first light pixel that begins as many of them as the zone is wide. */
function codeAt(
  picture: PixelFrame,
  light: number,
  { modules, modulePixels, quietModules }: { modules: number; modulePixels: number; quietModules: number },
): { x: number; y: number } {
  const side = (modules + 2 * quietModules) * modulePixels;
  const margin = quietModules * modulePixels;
  for (let y = 0; y <= picture.height - side; y += 1) {
    for (let x = 0; x <= picture.width - side; x += 1) {
      const first = pixelAt(picture, x + margin, y + margin) === 0;
      const last = pixelAt(picture, x + side - margin - 1, y + margin) === 0;
      if (first && last && pixelAt(picture, x, y) === light && pixelAt(picture, x + margin - 1, y + margin) === light) {
        return { x, y };
      }
    }
  }
  throw new Error('no code in the picture');
}

describe('the code on the screen', () => {
  it.each([
    [800, 480],
    [480, 320],
    [320, 240],
    [240, 240],
    [1280, 720],
    [480, 800],
    [240, 320],
    [320, 480],
    [720, 1280],
    [320, 170],
    [128, 128],
    [128, 64],
    [64, 128],
    [64, 64],
  ])('of %i x %i is read by two decoders, and is as the qrCheck says', async (width, height) => {
    const renderer = await openRenderer({ kind: 'pixels', width, height }, source);
    for (const length of LENGTHS) {
      const qrCode = payloadOf(length);
      const qrCheck = renderer.checkQr(qrCode);
      const picture = pixels(renderer.render({ ...PAYMENT, qrCode, online: length !== 142 }));
      if (!qrCheck.ok) {
        expect(qrCheck.reason).toMatch(/\d+ x \d+ modules.*\d+ x \d+ pixels.*gives it \d+ x \d+/);
        expect(Math.min(width, height)).toBe(64);
        expect(length).toBe(280);
        continue;
      }
      expect(qrCheck.modules).toBe(17 + 4 * qrCheck.version);
      expect(qrCheck).toMatchObject({ polarity: 'dark on light', ecc: expect.stringMatching(/^[LMQH]$/) });
      const light = Math.min(width, height) < 200 ? 0xd8d8d8 : 0xffffff;
      expectGeometry(picture, codeAt(picture, light, qrCheck), qrCheck, light);
      if (qrCheck.modulePixels > 1) expectDecodes(picture, qrCode);
      else expectDecodes(enlarged(picture, 3), qrCode);
    }
  });

  it('a code has the whole screen where it would be hard to read beside texts', async () => {
    const renderer = await openRenderer({ kind: 'pixels', width: 320, height: 240 }, source);
    expect(renderer.checkQr(payloadOf(220))).toMatchObject({ ok: true, modulePixels: 3 });
    const small = await openRenderer({ kind: 'pixels', width: 240, height: 240 }, source);
    expect(small.checkQr(payloadOf(280))).toMatchObject({ ok: true, modulePixels: 3 });
  });

  it('a code is left out where there is no room, and the amount is shown instead', async () => {
    const renderer = await openRenderer({ kind: 'pixels', width: 64, height: 32 }, source);
    expect(renderer.checkQr(payloadOf(142)).ok).toBe(false);
    const picture = pixels(renderer.render(PAYMENT));
    const colors = new Set(Array.from({ length: 64 * 32 }, (_, at) => pixelAt(picture, at % 64, Math.floor(at / 64))));
    expect(colors).toEqual(new Set([0x000000, 0xd8d8d8]));
  });

  it('a picture of the screen is opaque, of the right size, and the same every time', async () => {
    const renderer = await openRenderer({ kind: 'pixels', width: 480, height: 320 }, source);
    const frame = pixels(renderer.render(PAYMENT));
    const first = Uint8Array.from(frame.data);
    expect(first.length).toBe(480 * 320 * 4);
    expect(first.every((byte, index) => index % 4 !== 3 || byte === 255)).toBe(true);
    renderer.render({ ...PAYMENT, qrCode: payloadOf(94) });
    expect(Buffer.compare(frame.data, first), 'kept while the next one is made').toBe(0);
    for (const scene of Object.values(SCENES)) renderer.render(scene);
    expect(Buffer.compare(pixels(renderer.render(PAYMENT)).data, first)).toBe(0);
  });

  it('a picture of the screen is refused on a display of characters alone', async () => {
    const renderer = await openRenderer({ kind: 'characters', columns: 20, rows: 4, halfBlocks: false }, source);
    expect(renderer.checkQr(payloadOf(94))).toMatchObject({ ok: false, reason: expect.stringContaining('characters') });
  });
});

/** The same picture with each pixel as a square: one pixel a module is fewer than the decoders sample. */
function enlarged({ width, height, data }: PixelFrame, factor: number): PixelFrame {
  const large = new Uint8Array(width * height * factor * factor * 4);
  for (let y = 0; y < height * factor; y += 1) {
    for (let x = 0; x < width * factor; x += 1) {
      const from = (Math.floor(y / factor) * width + Math.floor(x / factor)) * 4;
      large.set(data.subarray(from, from + 4), (y * width * factor + x) * 4);
    }
  }
  return { kind: 'pixels', width: width * factor, height: height * factor, data: large };
}
