import sharp from 'sharp';
import { describe, expect, it } from 'vitest';
import { decodePicture, readPlainPng } from '../../src/bench/engine/pictures.ts';
import { encodePng } from '../../src/device/display/pixels/png.ts';
import { openRenderer } from '../../src/device/display/render.ts';
import type { Scene } from '../../src/device/scene.ts';
import { glyphCache } from '../display/pictures.ts';
import { PAYMENT, SCENES } from '../display/scenes.ts';

const source = glyphCache();
const raw = { width: 2, height: 2, channels: 3 } as const;
const CORNERS = Buffer.from([255, 0, 0, 0, 255, 0, 0, 0, 255, 9, 8, 7]);

async function screenOf(scene: Scene): Promise<Uint8Array> {
  const renderer = await openRenderer({ kind: 'pixels', width: 480, height: 320 }, source);
  return encodePng(renderer.render(scene));
}

/** What the general decoder reads. */
async function read(file: Uint8Array) {
  const { data, info } = await sharp(file).ensureAlpha().raw().toBuffer({ resolveWithObject: true });
  return { width: info.width, height: info.height, data };
}

describe('the reader of plain PNG files', () => {
  it.each(Object.entries(SCENES))('reads the screen of a box as the general decoder does: %s', async (_name, scene) => {
    const file = await screenOf(scene);
    const expected = await read(file);
    const seen = readPlainPng(file);
    expect([seen?.width, seen?.height]).toEqual([expected.width, expected.height]);
    expect(Buffer.compare(seen?.data ?? Buffer.alloc(0), expected.data)).toBe(0);
  });

  it.each([
    ['a JPEG', sharp(CORNERS, { raw }).jpeg()],
    ['a PNG with transparency', sharp(CORNERS, { raw }).ensureAlpha(0.5).png()],
    ['a PNG of few colours', sharp(CORNERS, { raw }).png({ palette: true })],
    ['an interlaced PNG', sharp(CORNERS, { raw }).png({ progressive: true })],
    ['a PNG of all filters', sharp(CORNERS, { raw }).png({ adaptiveFiltering: true })],
    ['a PNG that says how large its pixels are', sharp(CORNERS, { raw }).withMetadata({ density: 72 }).png()],
  ])('leaves %s to the general decoder', async (_name, picture) => {
    const file = await picture.toBuffer();
    expect(readPlainPng(file)).toBeUndefined();
    expect(await decodePicture(file)).toMatchObject({ width: 2, height: 2 });
  });

  it('reads no damaged file, wherever a byte is wrong or the file ends', async () => {
    const file = Buffer.from(await screenOf(PAYMENT));
    const whole = readPlainPng(file);
    expect(whole).toBeDefined();
    for (let at = 0; at < file.length; at += Math.ceil(file.length / 200)) {
      const damaged = Buffer.from(file);
      damaged.writeUInt8((damaged.readUInt8(at) + 1) % 256, at);
      expect([at, readPlainPng(damaged)]).toEqual([at, undefined]);
      expect([at, readPlainPng(file.subarray(0, at))]).toEqual([at, undefined]);
    }
  });
});
