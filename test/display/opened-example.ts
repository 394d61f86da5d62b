import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { isPanelName, type PanelName } from '../../src/bench/panels/emulator.ts';
import { EMULATORS } from '../../src/bench/panels/panel.ts';
import type { Surface } from '../../src/device/display/contract.ts';
import { openRenderer } from '../../src/device/display/render.ts';
import type { Scene } from '../../src/device/scene.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { PROGRAMS, without } from '../support/programs.ts';
import { FakeFramebuffer } from './emulators/framebuffer.ts';
import type { Hardware } from './emulators/hardware.ts';
import { FakeLedMatrix } from './emulators/led-matrix.ts';
import { testIo } from './io.ts';
import { openDriver, plugged } from './opened.ts';
import { PAYMENT } from './scenes.ts';
import { DARK, TerminalEmulator } from './terminal-emulator.ts';

/** What each driver's example is changed in, so that a test touches nothing outside its folder. */
export const LOCAL: Readonly<Record<string, (folder: string) => object>> = {
  png: (folder) => ({ path: join(folder, 'screen.png') }),
  framebuffer: (root) => {
    const { root: made } = new FakeFramebuffer(root, { width: 320, height: 240, bitsPerPixel: 16, strideBytes: 704 });
    return { root: made };
  },
  'led-matrix': (folder) => new FakeLedMatrix(folder).options,
};

export const FAULT = { code: 'DISPLAY_FAULT', severity: 'retryable' };

export const socat = without(PROGRAMS.socat);

export function drawsQr(surface: Surface): boolean {
  return surface.kind === 'panel' ? surface.qr !== null : surface.kind === 'pixels' || surface.halfBlocks;
}

/** The driver's example on this device, on an emulator of its own, or on what needs no device. */
export async function openExample(name: string, given?: Hardware) {
  const device = given ?? (isPanelName(name) ? await plugged(EMULATORS[name]) : undefined);
  const folder = await temporaryFolder();
  let asks = 0;
  const io = testIo(join(folder, 'cache'), new TerminalEmulator(80, 24, DARK, 24), () => {
    asks += 1;
  });
  const display = await openDriver(name, io, { ...LOCAL[name]?.(folder), ...device?.options });
  onTestFinished(() => display.close());
  const renderer = await openRenderer(display.surface, io);
  return { display, renderer, show: (scene: Scene) => display.draw(renderer.render(scene), scene), asked: () => asks };
}

/** A device with its display open on it. */
export async function openPlugged(name: PanelName) {
  const device = await plugged(EMULATORS[name]);
  return { device, ...(await openExample(name, device)) };
}

export async function expectPayment(device: Hardware, surface: Surface): Promise<void> {
  // A screen of pixels has no texts: its QR is enough.
  const isPixels = surface.kind === 'pixels';
  const hasAmount = () => device.shownTexts().some((text) => /50\.?000/.test(text));
  await eventually('the payment', () => (isPixels ? device.shownQr() !== undefined : hasAmount()));
  expect(device.shownQr()).toBe(drawsQr(surface) ? PAYMENT.qrCode : undefined);
}
