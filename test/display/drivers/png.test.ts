import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { decode } from 'fast-png';
import { describe, expect, it } from 'vitest';
import { png } from '../../../src/device/display/drivers/png.ts';
import { openRenderer } from '../../../src/device/display/render.ts';
import type { Scene } from '../../../src/device/scene.ts';
import { temporaryFolder } from '../../support/net.ts';
import { PROGRAMS, without } from '../../support/programs.ts';
import { testIo } from '../io.ts';
import { zbarReads } from '../pictures.ts';
import { PAYMENT, QR_CODE, SCENES } from '../scenes.ts';

async function openIn(folder: string, path: string) {
  const io = testIo(join(folder, 'cache'));
  const display = await png.open({ path, width: 320, height: 240, rotation: 0 }, io, new AbortController().signal);
  return { display, renderer: await openRenderer(display.surface, io) };
}

const zbar = without(PROGRAMS.zbar);

describe('the png display', () => {
  it.skipIf(zbar.missing)(`the png display keeps a picture file that a QR reader reads${zbar.note}`, async () => {
    const folder = await temporaryFolder();
    const path = join(folder, 'deeper', 'screen.png');
    const { display, renderer } = await openIn(folder, path);
    await display.draw(renderer.render(PAYMENT), PAYMENT);
    expect(zbarReads(path)).toBe(QR_CODE);
    await display.close();
  });

  it('the png display writes a file for a change, and while only the seconds change every ten of them', async () => {
    const folder = await temporaryFolder();
    const path = join(folder, 'screen.png');
    const { display, renderer } = await openIn(folder, path);
    const files = new Set<string>();
    const show = async (scene: Scene) => {
      await display.draw(renderer.render(scene), scene);
      const before = files.size;
      const { ino, mtimeNs } = await stat(path, { bigint: true });
      files.add(`${ino} ${mtimeNs}`);
      return files.size > before;
    };
    const written: number[] = [];
    for (let secondsLeft = 100; secondsLeft > 70; secondsLeft -= 1) {
      if (await show({ ...PAYMENT, secondsLeft })) written.push(secondsLeft);
    }
    expect(written).toEqual([100, 90, 80]);
    expect(await show({ ...PAYMENT, secondsLeft: 71, online: false })).toBe(true);
    expect(zbar.missing || zbarReads(path)).toBe(zbar.missing || QR_CODE);
    const before = await readFile(path);
    await display.draw(renderer.render(SCENES.idle ?? PAYMENT), SCENES.idle ?? PAYMENT);
    expect((await readFile(path)).equals(before)).toBe(false);
    await display.close();
  });

  it('the png display never shows half a picture, and leaves nothing else beside it', async () => {
    const folder = await temporaryFolder();
    const path = join(folder, 'screens', 'screen.png');
    const { display, renderer } = await openIn(folder, path);
    const scenes = Object.values(SCENES);
    await display.draw(renderer.render(PAYMENT), PAYMENT);
    const writing = (async () => {
      for (let round = 0; round < 5; round += 1) {
        for (const scene of scenes) await display.draw(renderer.render(scene), scene);
      }
      return true;
    })();
    let done = false;
    void writing.then(() => {
      done = true;
    });
    while (!done) expect(decode(await readFile(path))).toMatchObject({ width: 320, height: 240 });
    await writing;
    expect(await readdir(join(folder, 'screens'))).toEqual(['screen.png']);
  });

  it('the png display ends with a black picture in the place of a QR, and with no fault where it cannot', async () => {
    const folder = await temporaryFolder();
    const path = join(folder, 'screens', 'screen.png');
    const unused = await openIn(folder, path);
    await unused.display.close();
    expect(await readdir(join(folder, 'screens'))).toEqual([]);
    const { display, renderer } = await openIn(folder, path);
    await display.draw(renderer.render(PAYMENT), PAYMENT);
    await display.close();
    const { width, height, data } = decode(await readFile(path));
    expect([width, height]).toEqual([320, 240]);
    expect(data.every((sample) => sample === 0)).toBe(true);
    const left = await openIn(folder, path);
    await left.display.draw(renderer.render(PAYMENT), PAYMENT);
    const { paid = PAYMENT } = SCENES;
    await left.display.draw(renderer.render(paid), paid);
    const before = await readFile(path);
    await left.display.close();
    expect(await readFile(path), 'what is no QR stays').toEqual(before);
    const lost = await openIn(folder, path);
    await lost.display.draw(renderer.render(PAYMENT), PAYMENT);
    await rm(join(folder, 'screens'), { recursive: true });
    await lost.display.close();
    await lost.display.close();
  });

  it('the png display says what to do when the file cannot be written, and works again once it can', async () => {
    const folder = await temporaryFolder();
    const path = join(folder, 'screens', 'screen.png');
    const { display, renderer } = await openIn(folder, path);
    await mkdir(path);
    const frame = renderer.render(PAYMENT);
    await expect(display.draw(frame, PAYMENT)).rejects.toMatchObject({
      code: 'DISPLAY_FAULT',
      severity: 'retryable',
      message: expect.stringContaining(path),
      fix: expect.stringContaining('another path'),
    });
    expect(await readdir(join(folder, 'screens'))).toEqual(['screen.png']);
    await rm(path, { recursive: true });
    await display.draw(frame, PAYMENT);
    expect(decode(await readFile(path)).width).toBe(320);
  });

  it('the png display does not open where its folder cannot be', async () => {
    const folder = await temporaryFolder();
    await writeFile(join(folder, 'file'), '');
    await expect(openIn(folder, join(folder, 'file', 'screen.png'))).rejects.toMatchObject({ code: 'DISPLAY_FAULT' });
  });
});
