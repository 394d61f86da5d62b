import { expect, onTestFinished } from 'vitest';
import type { PanelEmulator } from '../../src/bench/panels/emulator.ts';
import type { Display, DisplayIo } from '../../src/device/display/contract.ts';
import { DISPLAY_DRIVERS } from '../../src/device/display/registry.ts';
import { openRenderer } from '../../src/device/display/render.ts';
import type { Scene } from '../../src/device/scene.ts';
import { Cable } from './emulators/cable.ts';
import { type Hardware, type Make, onPty, shownQr } from './emulators/hardware.ts';
import { testIo } from './io.ts';
import { SCENES } from './scenes.ts';

export interface Opened {
  display: Display;
  /** Draws the scene as the agent would. */
  show(scene: Scene): Promise<void>;
  /** How often the driver has asked for a new drawing. */
  asked(): number;
}

/** The device at the end of a cable that is gone when the test ends; the device must have no complaints then. */
export async function plugged<E extends PanelEmulator>(make: Make<E>): Promise<Hardware<E>> {
  const hardware = await onPty(make);
  onTestFinished(async () => {
    await hardware.pty.close();
    expect(hardware.violations()).toEqual([]);
  });
  return hardware;
}

/** A panel at the end of a cable without delay, to be opened there; it must have no complaints when the test ends. */
export function cabled<P extends PanelEmulator>(name: string, make: Make<P>) {
  const cable = new Cable(make);
  const { panel } = cable;
  onTestFinished(() => expect(panel.violations).toEqual([]));
  const openSerial = () => cable.open();
  const open = (options: object = {}, world: Partial<DisplayIo> = {}) =>
    openOn(name, options, { openSerial, ...world });
  return { cable, panel, open, shownQr: () => shownQr(panel) };
}

/** The driver's example, changed by `options`, opened in this world. */
export function openDriver(name: string, io: DisplayIo, options: object): Promise<Display> {
  const driver = DISPLAY_DRIVERS.get(name);
  if (driver === undefined) throw new Error(`no driver ${name}`);
  return driver.configure({ ...(driver.example as object), ...options }).open(io, new AbortController().signal);
}

/** The driver's display, changed by `options`, in a test's world; closed when the test ends. */
export async function openOn(name: string, options: object = {}, world: Partial<DisplayIo> = {}): Promise<Opened> {
  let asks = 0;
  const io = {
    ...testIo('/nowhere', undefined, () => {
      asks += 1;
    }),
    ...world,
  };
  const display = await openDriver(name, io, options);
  onTestFinished(() => display.close());
  const renderer = await openRenderer(display.surface, io);
  return { display, show: (scene) => display.draw(renderer.render(scene), scene), asked: () => asks };
}

/** One of the sample scenes. */
export function scene(name: string): Scene {
  const found = SCENES[name];
  if (found === undefined) throw new Error(`no scene ${name}`);
  return found;
}
