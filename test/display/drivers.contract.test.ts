import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ZodError } from 'zod';
import type { Surface } from '../../src/display/contract.ts';
import { DISPLAY_DRIVERS } from '../../src/display/registry.ts';
import { openRenderer } from '../../src/display/render.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { PROGRAMS, without } from '../support/programs.ts';
import { FakeFramebuffer } from './emulators/framebuffer.ts';
import type { Hardware } from './emulators/hardware.ts';
import { FakeLedMatrix } from './emulators/led-matrix.ts';
import { HARDWARE } from './emulators/registry.ts';
import { testIo } from './io.ts';
import { ENROL, PAYMENT, SCENES } from './scenes.ts';
import { DARK, TerminalEmulator } from './terminal-emulator.ts';

/** What each driver's example is changed in, so that a test touches nothing outside its folder. */
const LOCAL: Readonly<Record<string, (folder: string) => object>> = {
  png: (folder) => ({ path: join(folder, 'screen.png') }),
  framebuffer: (root) => {
    const { root: made } = new FakeFramebuffer(root, { width: 320, height: 240, bitsPerPixel: 16, strideBytes: 704 });
    return { root: made };
  },
  'led-matrix': (folder) => new FakeLedMatrix(folder).options,
};

const PAID = SCENES.paid ?? PAYMENT;
const BLANK = { kind: 'blank' } as const;
const SILENCE_MS = 300;

const socat = without(PROGRAMS.socat);
const noPort = (name: string) => HARDWARE.has(name) && socat.missing;

/** The emulated device of a driver that needs one. It must have no complaints when the test ends. */
async function deviceOf(name: string): Promise<Hardware | undefined> {
  const device = await HARDWARE.get(name)?.();
  onTestFinished(async () => {
    await device?.close();
    expect(device?.violations() ?? []).toEqual([]);
  });
  return device;
}

function drawsQr(surface: Surface): boolean {
  return surface.kind === 'panel' ? surface.qr !== null : surface.kind === 'pixels' || surface.halfBlocks;
}

/** Settles once the device has been silent for a moment: the port says too early that bytes have left. */
async function arrived(device: Hardware | undefined): Promise<void> {
  let bytes = -1;
  let sinceMs = performance.now();
  await eventually('silence on the line', () => {
    const length = device?.received().length ?? 0;
    if (length !== bytes) sinceMs = performance.now();
    bytes = length;
    return performance.now() - sinceMs > SILENCE_MS;
  });
}

async function openExample(name: string, hardware?: Hardware) {
  const driver = DISPLAY_DRIVERS.get(name);
  if (driver === undefined) throw new Error(`no driver ${name}`);
  const device = hardware ?? (await deviceOf(name));
  const folder = await temporaryFolder();
  const options = { ...(driver.example as object), ...LOCAL[name]?.(folder), ...device?.options };
  const io = testIo(join(folder, 'cache'), new TerminalEmulator(80, 24, DARK, 24));
  const display = await driver.configure(options).open(io, new AbortController().signal);
  onTestFinished(() => display.close());
  return { display, renderer: await openRenderer(display.surface, io) };
}

describe.each([...DISPLAY_DRIVERS.keys()])('the display driver %s', (name) => {
  const drawing = it.skipIf(noPort(name));
  const note = noPort(name) ? socat.note : '';

  it('is registered under its own name, with a summary and an example that its options accept', () => {
    const driver = DISPLAY_DRIVERS.get(name);
    expect(driver?.name).toBe(name);
    expect(driver?.summary).not.toBe('');
    expect(driver?.options.safeParse(driver.example).success).toBe(true);
  });

  drawing(`draws every scene${note}`, async () => {
    const { display, renderer } = await openExample(name);
    for (const scene of Object.values(SCENES)) await display.draw(renderer.render(scene), scene);
    expect(renderer.checkQr(PAYMENT.qrCode).ok).toBe(drawsQr(display.surface));
    await display.close();
  });

  drawing(`refuses a frame of another kind of screen${note}`, async () => {
    const { display } = await openExample(name);
    const other =
      display.surface.kind === 'pixels'
        ? ({ kind: 'characters', columns: 1, rows: 1, cells: [{ char: ' ', ink: 0, paper: 0 }] } as const)
        : ({ kind: 'pixels', width: 1, height: 1, data: new Uint8Array(4) } as const);
    await expect(display.draw(other, PAYMENT)).rejects.toMatchObject({ code: 'DISPLAY_FAULT' });
    await display.close();
  });

  drawing(`closes once, and draws no more${note}`, async () => {
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

describe.skipIf(socat.missing).each([...HARDWARE.keys()])(
  `the device of the display driver %s${socat.note}`,
  (name) => {
    it('shows what is drawn: the content, and the QR where it has one', async () => {
      const device = await deviceOf(name);
      const { display, renderer } = await openExample(name, device);
      await display.draw(renderer.render(PAYMENT), PAYMENT);
      await expectPayment(device, display.surface);
    });

    it('leaves no QR behind when it is closed', async () => {
      const device = await deviceOf(name);
      const { display, renderer } = await openExample(name, device);
      await display.draw(renderer.render(PAYMENT), PAYMENT);
      await eventually('the payment', () => device?.shownQr() !== undefined || !drawsQr(display.surface));
      device?.forget();
      await display.close();
      if (name !== 'escpos') return eventually('the end of the QR', () => device?.shownQr() === undefined);
      // A printed QR stays on the paper, and closing prints nothing.
      await arrived(device);
      expect(device?.shownQr()).toBe(PAYMENT.qrCode);
      expect(device?.received()).toHaveLength(0);
    });

    it('shows the code by which a box is enrolled, and takes it away when it is closed', async () => {
      const device = await deviceOf(name);
      const { display, renderer } = await openExample(name, device);
      await display.draw(renderer.render(ENROL), ENROL);
      await arrived(device);
      // Paper is for payments, and a DQR box shows no QR without an amount.
      const hasQr = drawsQr(display.surface) && !['escpos', 'dqr'].includes(name);
      expect(device?.shownQr()).toBe(hasQr ? ENROL.url : undefined);
      // A screen of pixels has no words to read.
      const hasWords = display.surface.kind !== 'pixels' && name !== 'escpos';
      expect(device?.shownTexts().join(' ').includes(ENROL.code)).toBe(hasWords);
      await display.close();
      await eventually('the end of the QR', () => device?.shownQr() === undefined);
    });

    it('leaves everything else where it is when it is closed', async () => {
      const device = await deviceOf(name);
      const { display, renderer } = await openExample(name, device);
      await display.draw(renderer.render(PAID), PAID);
      await arrived(device);
      const before = device?.shownTexts();
      device?.forget();
      await display.close();
      await arrived(device);
      expect(Buffer.from(device?.received() ?? []).toString('latin1')).toBe('');
      expect(device?.shownTexts()).toEqual(before);
    });

    it('shows nothing once it is told to be blank', async () => {
      const device = await deviceOf(name);
      const { display, renderer } = await openExample(name, device);
      await display.draw(renderer.render(PAYMENT), PAYMENT);
      await arrived(device);
      device?.forget();
      await display.draw(renderer.render(BLANK), BLANK);
      await arrived(device);
      if (name === 'escpos') {
        expect(device?.received()).toHaveLength(0);
        return;
      }
      // The DQR box has no empty screen: its welcome, with a dash, says least.
      const words = () => device?.shownTexts().filter((text) => text.replaceAll(/[- ]/g, '') !== '') ?? [];
      await eventually('a blank screen', () => device?.shownQr() === undefined && words().length === 0);
    });

    it('is named when it is not there, with what to do', async () => {
      const device = await deviceOf(name);
      await device?.unplug();
      await expect(openExample(name, device)).rejects.toMatchObject({
        code: 'DISPLAY_FAULT',
        severity: 'retryable',
        fix: expect.stringContaining('plug the device in'),
      });
    });

    it('is named when another program has it open', async () => {
      const device = await deviceOf(name);
      await openExample(name, device);
      await expect(openExample(name, device)).rejects.toMatchObject({
        code: 'DISPLAY_FAULT',
        severity: 'retryable',
        fix: expect.stringContaining('another program'),
      });
    });

    it('may be unplugged: the next drawing names it, and a new opening works once it is back', async () => {
      const device = await deviceOf(name);
      const { display, renderer } = await openExample(name, device);
      await display.draw(renderer.render(PAYMENT), PAYMENT);
      await device?.unplug();
      // For a rest a printer sends nothing, which no port refuses.
      await expect(display.draw(renderer.render(PAID), PAID)).rejects.toMatchObject({
        code: 'DISPLAY_FAULT',
        severity: 'retryable',
      });
      await display.close();
      await device?.plug();
      const again = await openExample(name, device);
      await again.display.draw(again.renderer.render(PAYMENT), PAYMENT);
      await expectPayment(device, again.display.surface);
    });
  },
);

async function expectPayment(device: Hardware | undefined, surface: Surface): Promise<void> {
  // A screen of pixels has no texts: its QR is enough.
  const isPixels = surface.kind === 'pixels';
  const hasAmount = () => device?.shownTexts().some((text) => /50\.?000/.test(text));
  await eventually('the payment', () => (isPixels ? device?.shownQr() !== undefined : hasAmount()));
  expect(device?.shownQr()).toBe(drawsQr(surface) ? PAYMENT.qrCode : undefined);
}

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
