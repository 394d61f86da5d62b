import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';
import { framebuffer } from '../../../src/device/display/drivers/framebuffer.ts';
import { openRenderer } from '../../../src/device/display/render.ts';
import type { Scene } from '../../../src/device/scene.ts';
import { createLogger } from '../../../src/lib/log.ts';
import { VirtualClock } from '../../../src/lib/virtual-clock.ts';
import { temporaryFolder } from '../../support/net.ts';
import { FakeFramebuffer, type FakeFramebufferSettings } from '../emulators/framebuffer.ts';
import { testIo } from '../io.ts';

/** Rows that are longer than their pixels, by a number that is no multiple of a pixel of any depth. */
export const RGB565: FakeFramebufferSettings = { width: 320, height: 240, bitsPerPixel: 16, strideBytes: 647 };
export const XRGB: FakeFramebufferSettings = { width: 320, height: 240, bitsPerPixel: 32, strideBytes: 1285 };

/** A device with its folder, gone after the test. */
export async function fake(settings: FakeFramebufferSettings): Promise<FakeFramebuffer> {
  return new FakeFramebuffer(await temporaryFolder(), settings);
}

/** An open display on this device; closed when the test ends. */
export async function openOn(
  device: FakeFramebuffer,
  cacheDir: string,
  options: object = {},
  clock = new VirtualClock(),
) {
  const lines = new PassThrough();
  let asked = 0;
  const io = {
    ...testIo(cacheDir, undefined, () => {
      asked += 1;
    }),
    clock,
    log: createLogger(lines, clock, 'text'),
  };
  const given = framebuffer.options.parse({ root: device.root, ...options });
  const display = await framebuffer.open(given, io, new AbortController().signal);
  onTestFinished(() => display.close());
  const renderer = await openRenderer(display.surface, io);
  const show = (scene: Scene) => display.draw(renderer.render(scene), scene);
  const logged = () => text(lines.end());
  return { display, show, clock, logged, asked: () => asked };
}
