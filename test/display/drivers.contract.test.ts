import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ZodError } from 'zod';
import { DISPLAY_DRIVERS } from '../../src/display/registry.ts';
import { openRenderer } from '../../src/display/render.ts';
import { temporaryFolder } from '../support/net.ts';
import { FakeFramebuffer } from './emulators/framebuffer.ts';
import { testIo } from './io.ts';
import { PAYMENT, SCENES } from './scenes.ts';
import { DARK, TerminalEmulator } from './terminal-emulator.ts';

/** What each driver's example is changed in, so that a test touches nothing outside its folder. */
const LOCAL: Readonly<Record<string, (folder: string) => object>> = {
  png: (folder) => ({ path: join(folder, 'screen.png') }),
  framebuffer: (root) => {
    const { root: made } = new FakeFramebuffer(root, { width: 320, height: 240, bitsPerPixel: 16, strideBytes: 704 });
    return { root: made };
  },
};

async function openExample(name: string) {
  const driver = DISPLAY_DRIVERS.get(name);
  if (driver === undefined) throw new Error(`no driver ${name}`);
  const folder = await temporaryFolder();
  const options = { ...(driver.example as object), ...LOCAL[name]?.(folder) };
  const io = testIo(join(folder, 'cache'), new TerminalEmulator(80, 24, DARK, 24));
  const display = await driver.configure(options).open(io, new AbortController().signal);
  return { display, renderer: await openRenderer(display.surface, io) };
}

describe.each([...DISPLAY_DRIVERS.keys()])('the display driver %s', (name) => {
  it('is registered under its own name, with a summary and an example that its options accept', () => {
    const driver = DISPLAY_DRIVERS.get(name);
    expect(driver?.name).toBe(name);
    expect(driver?.summary).not.toBe('');
    expect(driver?.options.safeParse(driver.example).success).toBe(true);
  });

  it('draws every scene', async () => {
    const { display, renderer } = await openExample(name);
    for (const scene of Object.values(SCENES)) await display.draw(renderer.render(scene), scene);
    expect(renderer.verdict(PAYMENT.qrCode).ok).toBe(true);
    await display.close();
  });

  it('refuses a frame of another kind of screen', async () => {
    const { display } = await openExample(name);
    const other =
      display.surface.kind === 'pixels'
        ? ({ kind: 'characters', columns: 1, rows: 1, cells: [{ char: ' ', ink: 0, paper: 0 }] } as const)
        : ({ kind: 'pixels', width: 1, height: 1, data: new Uint8Array(4) } as const);
    await expect(display.draw(other, PAYMENT)).rejects.toMatchObject({ code: 'DISPLAY_FAULT' });
    await display.close();
  });

  it('closes once, and draws no more', async () => {
    const { display, renderer } = await openExample(name);
    await display.close();
    await display.close();
    await expect(display.draw(renderer.render(PAYMENT), PAYMENT)).rejects.toMatchObject({
      code: 'DISPLAY_FAULT',
      severity: 'retryable',
    });
  });

  it('refuses options that it does not know, and names them', () => {
    const driver = DISPLAY_DRIVERS.get(name);
    const configure = () => driver?.configure({ ...(driver.example as object), widht: 3 });
    expect(configure).toThrow(ZodError);
    expect(configure).toThrow('widht');
  });
});

describe('options of displays', () => {
  it.each([
    ['browser', { width: 8 }, 'width'],
    ['browser', { height: '480' }, 'height'],
    ['browser', { width: 100_000 }, 'width'],
    ['png', { width: 800 }, 'path'],
    ['png', { path: '' }, 'path'],
    ['terminal', { columns: 0 }, 'columns'],
    ['terminal', { rows: 1.5 }, 'rows'],
  ])('%s refuses %j by the path', (name, options, path) => {
    const parsed = DISPLAY_DRIVERS.get(name)?.options.safeParse(options);
    expect(parsed?.error?.issues[0]?.path).toEqual([path]);
  });
});
