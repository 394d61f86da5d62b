import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { BoxClient } from '../../src/bench/engine/clients/box.ts';
import { comparePictures, decodePicture, encodePicture, readQr } from '../../src/bench/engine/pictures.ts';
import { framebufferPicture, probeOf } from '../../src/bench/engine/probes.ts';
import { QR_CODE } from '../display/scenes.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { paymentOn } from './probe-fixture.ts';

const BOX = new BoxClient('http://127.0.0.1:9', { terminalCode: 'VVB000001', serialNumber: 'VVB900001' });

async function file(name: string, bytes: Uint8Array): Promise<string> {
  const path = join(await temporaryFolder(), name);
  await writeFile(path, bytes);
  return path;
}

describe('a probe', () => {
  it('a probe reads a picture file', async () => {
    const path = await file('screen.png', await encodePicture(await paymentOn(480, 320)));
    expect(await probeOf(`file:${path}`).capture(BOX)).toMatchObject({
      qr: QR_CODE,
      picture: { width: 480, height: 320 },
    });
  });

  it('a probe decodes a picture once as long as it does not change', async () => {
    const path = await file('screen.png', await encodePicture(await paymentOn(480, 320)));
    const probe = probeOf(`file:${path}`);
    const seen = await probe.capture(BOX);
    expect(await probe.capture(BOX)).toBe(seen);
    await writeFile(path, await encodePicture({ width: 1, height: 1, data: new Uint8Array(4) }));
    expect(await probe.capture(BOX)).toMatchObject({ qr: undefined, picture: { width: 1, height: 1 } });
  });

  it.each([
    [16, 2],
    [32, 4],
  ])('reads a framebuffer of %i bits', async (bits, bytesPerPixel) => {
    const picture = await paymentOn(480, 320);
    const bytes = Buffer.alloc(480 * 320 * bytesPerPixel);
    for (let pixel = 0; pixel < 480 * 320; pixel += 1) {
      const [red = 0, green = 0, blue = 0] = picture.data.subarray(pixel * 4, pixel * 4 + 3);
      if (bits === 16) bytes.writeUInt16LE(((red >> 3) << 11) | ((green >> 2) << 5) | (blue >> 3), pixel * 2);
      else bytes.set([blue, green, red, 0], pixel * 4);
    }
    const seen = await probeOf(`framebuffer:${await file('fb0', bytes)}:480x320x${bits}`).capture(BOX);
    expect(seen?.qr).toBe(QR_CODE);
    expect(await readQr(await decodePicture(seen?.file ?? new Uint8Array()))).toBe(QR_CODE);
    expect(comparePictures(seen?.picture ?? picture, picture).share).toBe(0);
  });

  it('a probe reads what a command prints, and names the box to the command', async () => {
    const path = await file('VVB000001.png', await encodePicture(await paymentOn(320, 240)));
    const seen = await probeOf(
      `test "$PAYBOX_BOX_URL" = http://127.0.0.1:9 && cat "${path.replace('VVB000001', '$PAYBOX_BOX')}"`,
    ).capture(BOX);
    expect(seen?.qr).toBe(QR_CODE);
  });

  it.each([
    ['a command that fails', 'exit 3', /^the command of --probe ended with 3: exit 3$/],
    ['a command that prints no picture', 'echo no', /^the file is not a picture: /],
    ['a file that there is not', 'file:/nowhere.png', /^\/nowhere\.png cannot be read: ENOENT/],
    ['a framebuffer that there is not', 'framebuffer:/nowhere:4x4x16', /^\/nowhere cannot be read: ENOENT/],
  ])('a probe names what is wrong with %s', async (_what, text, message) => {
    await expect(probeOf(text).capture(BOX)).rejects.toThrow(message);
  });

  it('a probe ends a command that prints for ever, with all that it has started', async () => {
    const said = await file('pid', new Uint8Array());
    const endless = `sh -c 'echo $$ > ${said}; exec cat /dev/zero 2>/dev/null' | cat 2>/dev/null`;
    await expect(probeOf(endless).capture(BOX)).rejects.toThrow('printed too much');
    const pid = Number(await readFile(said, 'utf8'));
    expect(pid).toBeGreaterThan(0);
    // Of one that has ended, and that nobody has asked after, nothing is told.
    await eventually('its end', async () => (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')) === '');
  });

  it('a probe names what is wrong with its words', () => {
    expect(() => probeOf('framebuffer:/dev/fb0')).toThrow('expected framebuffer:PATH:WIDTHxHEIGHTx16 or …x32');
    expect(() => probeOf(' ')).toThrow('expected screen, file:…, framebuffer:… or a command');
    expect(() => framebufferPicture(new Uint8Array(3), { width: 1, height: 1, bytesPerPixel: 4 })).toThrow('too few');
  });
});

describe('a golden picture', () => {
  const size = { width: 4, height: 2 };
  const white = { ...size, data: new Uint8Array(32).fill(255) };

  it('a golden picture matches within a tolerance of each channel', () => {
    expect(comparePictures({ ...size, data: new Uint8Array(32).fill(240) }, white).share).toBe(0);
  });

  it('a golden picture reports the share of pixels that differ, which are red in the difference', () => {
    const data = Uint8Array.from(white.data);
    data.fill(0, 4, 7);
    const { share, picture } = comparePictures({ ...size, data }, white);
    expect(share).toBe(1 / 8);
    expect([...picture.data.subarray(0, 8)]).toEqual([255, 255, 255, 255, 255, 0, 0, 255]);
  });

  it('a golden picture does not match one of another size', () => {
    expect(comparePictures({ width: 2, height: 4, data: white.data }, white).share).toBe(1);
  });
});
