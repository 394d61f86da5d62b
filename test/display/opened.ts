import { onTestFinished } from 'vitest';
import type { Display, DisplayIo } from '../../src/display/contract.ts';
import type { RegisteredDriver } from '../../src/display/registry.ts';
import { openRenderer } from '../../src/display/render.ts';
import type { Scene } from '../../src/scene.ts';
import type { Hardware } from './emulators/hardware.ts';
import { testIo } from './io.ts';
import { SCENES } from './scenes.ts';

export interface Opened {
  display: Display;
  /** Draws the scene as the agent would. */
  show(scene: Scene): Promise<void>;
  /** How often the driver has asked for a new drawing. */
  asked(): number;
}

/** A driver's display on this device, with more options than the device's own; closed when the test ends. */
export async function openOn(
  driver: RegisteredDriver | undefined,
  { options }: Pick<Hardware, 'options'>,
  more: object = {},
  world: Partial<DisplayIo> = {},
): Promise<Opened> {
  if (driver === undefined) throw new Error('no such driver');
  let asks = 0;
  const io = {
    ...testIo('/nowhere', undefined, () => {
      asks += 1;
    }),
    ...world,
  };
  const given = { ...(driver.example as object), ...options, ...more };
  const display = await driver.configure(given).open(io, new AbortController().signal);
  onTestFinished(() => display.close());
  const renderer = await openRenderer(display.surface, io);
  return { display, show: (scene) => display.draw(renderer.render(scene), scene), asked: () => asks };
}

const BYTES_A_LINE = 32;

/** Bytes as lines of hex and, where they are ASCII, letters. */
export function hexText(bytes: Uint8Array): string {
  const lines = Array.from({ length: Math.ceil(bytes.length / BYTES_A_LINE) }, (_, index) => {
    const part = Buffer.from(bytes.slice(index * BYTES_A_LINE, (index + 1) * BYTES_A_LINE));
    const letters = part.toString('latin1').replaceAll(/[^ -~]/g, '.');
    return `${part.toString('hex').padEnd(2 * BYTES_A_LINE)}  ${letters}\n`;
  });
  return lines.join('');
}

/** The bytes of each step under its name, for a golden. */
export async function wireOf(
  hardware: Hardware,
  steps: Readonly<Record<string, () => Promise<unknown>>>,
): Promise<string> {
  let text = '';
  for (const [name, step] of Object.entries(steps)) {
    hardware.forget();
    await step();
    text += `# ${name}\n${hexText(hardware.received())}`;
  }
  return text;
}

/** One of the sample scenes. */
export function scene(name: string): Scene {
  const found = SCENES[name];
  if (found === undefined) throw new Error(`no scene ${name}`);
  return found;
}
