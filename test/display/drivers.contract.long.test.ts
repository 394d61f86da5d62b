import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ZodError } from 'zod';
import { isPanelName, PANEL_NAMES, type PanelName } from '../../src/bench/panels/emulator.ts';
import { EMULATORS } from '../../src/bench/panels/panel.ts';
import type { Surface } from '../../src/device/display/contract.ts';
import { DISPLAY_DRIVERS } from '../../src/device/display/registry.ts';
import { openRenderer } from '../../src/device/display/render.ts';
import type { Scene } from '../../src/device/scene.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { PROGRAMS, without } from '../support/programs.ts';
import { FakeFramebuffer } from './emulators/framebuffer.ts';
import { type Hardware, onPty } from './emulators/hardware.ts';
import { FakeLedMatrix } from './emulators/led-matrix.ts';
import { testIo } from './io.ts';
import { openDriver, plugged, scene } from './opened.ts';
import { ENROL, PAYMENT, payloadOf, SCENES } from './scenes.ts';
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

const FAULT = { code: 'DISPLAY_FAULT', severity: 'retryable' };
const IDLE = scene('idle');
const PAID = scene('paid');
const BLANK = { kind: 'blank' } as const;
/** Those that are asked before or after they draw: their own tests say what happens when they do not answer. */
const ANSWERING: readonly string[] = ['nextion', 'dwin', 'escpos'];
const SILENCE_MS = 300;
/** More drawings than any buffer of a port holds. */
const FLOOD_MAX = 10_000;

const socat = without(PROGRAMS.socat);
const noPort = (name: string) => isPanelName(name) && socat.missing;

function drawsQr(surface: Surface): boolean {
  return surface.kind === 'panel' ? surface.qr !== null : surface.kind === 'pixels' || surface.halfBlocks;
}

/** Settles once the device has been silent for a moment: the port says too early that bytes have left. */
async function arrived(device: Hardware): Promise<void> {
  let bytes = -1;
  let sinceMs = performance.now();
  await eventually('silence on the line', () => {
    const { length } = device.received();
    if (length !== bytes) sinceMs = performance.now();
    bytes = length;
    return performance.now() - sinceMs > SILENCE_MS;
  });
}

/** The driver's example on this device, on an emulator of its own, or on what needs no device. */
async function openExample(name: string, given?: Hardware) {
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
async function openPlugged(name: PanelName) {
  const device = await plugged(EMULATORS[name]);
  return { device, ...(await openExample(name, device)) };
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
    const { display, renderer, show } = await openExample(name);
    for (const scene of Object.values(SCENES)) await show(scene);
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
    const { display, show } = await openExample(name);
    await display.close();
    await display.close();
    await expect(show(PAYMENT)).rejects.toMatchObject(FAULT);
  });

  it('refuses options that it does not know, and names them', () => {
    const driver = DISPLAY_DRIVERS.get(name);
    const configure = () => driver?.configure({ ...(driver.example as object), widht: 3 });
    expect(configure).toThrow(ZodError);
    expect(configure).toThrow('widht');
  });
});

describe.skipIf(socat.missing).each(PANEL_NAMES)(`the device of the display driver %s${socat.note}`, (name) => {
  it('shows what is drawn: the content, and the QR where it has one', async () => {
    const { device, show, display } = await openPlugged(name);
    await show(PAYMENT);
    await expectPayment(device, display.surface);
  });

  it('leaves no QR behind when it is closed', async () => {
    const { device, show, display } = await openPlugged(name);
    await show(PAYMENT);
    await eventually('the payment', () => device.shownQr() !== undefined || !drawsQr(display.surface));
    device.forget();
    await display.close();
    if (name !== 'escpos') return eventually('the end of the QR', () => device.shownQr() === undefined);
    // A printed QR stays on the paper, and closing prints nothing.
    await arrived(device);
    expect(device.shownQr()).toBe(PAYMENT.qrCode);
    expect(device.received()).toHaveLength(0);
  });

  it('shows the code by which a box is enrolled, and takes it away when it is closed', async () => {
    const { device, show, display } = await openPlugged(name);
    await show(ENROL);
    await arrived(device);
    // Paper is for payments, and a DQR box shows no QR without an amount.
    const hasQr = drawsQr(display.surface) && !['escpos', 'dqr'].includes(name);
    expect(device.shownQr()).toBe(hasQr ? ENROL.url : undefined);
    // A screen of pixels has no words to read.
    const hasWords = display.surface.kind !== 'pixels' && name !== 'escpos';
    expect(device.shownTexts().join(' ').includes(ENROL.code)).toBe(hasWords);
    await display.close();
    await eventually('the end of the QR', () => device.shownQr() === undefined);
  });

  it('leaves everything else where it is when it is closed', async () => {
    const { device, show, display } = await openPlugged(name);
    await show(PAID);
    await arrived(device);
    const before = device.shownTexts();
    device.forget();
    await display.close();
    await arrived(device);
    expect(Buffer.from(device.received()).toString('latin1')).toBe('');
    expect(device.shownTexts()).toEqual(before);
  });

  it('shows nothing once it is told to be blank', async () => {
    const { device, show } = await openPlugged(name);
    await show(PAYMENT);
    await arrived(device);
    device.forget();
    await show(BLANK);
    await arrived(device);
    if (name === 'escpos') {
      expect(device.received()).toHaveLength(0);
      return;
    }
    // The DQR box has no empty screen: its welcome, with a dash, says least.
    const words = () => device.shownTexts().filter((text) => text.replaceAll(/[- ]/g, '') !== '');
    await eventually('a blank screen', () => device.shownQr() === undefined && words().length === 0);
  });

  it('is named by its port when it is not there, with what to do', async () => {
    const device = await plugged(EMULATORS[name]);
    await device.pty.unplug();
    await expect(openExample(name, device)).rejects.toMatchObject({
      ...FAULT,
      message: expect.stringContaining(device.options.path),
      fix: expect.stringMatching(/plug the device in.*\/dev\/serial\/by-id/),
    });
  });

  it('is named when another program has it open', async () => {
    const { device } = await openPlugged(name);
    await expect(openExample(name, device)).rejects.toMatchObject({
      ...FAULT,
      fix: expect.stringContaining('another program'),
    });
  });

  it('may be unplugged while idle: it asks for a drawing, which names it, and works once it is back', async () => {
    const { device, show, display, asked } = await openPlugged(name);
    await show(IDLE);
    await device.pty.unplug();
    await eventually('the driver asks for a drawing', () => asked() === 1);
    const lost = { ...FAULT, message: expect.stringContaining('is lost'), fix: expect.stringContaining('plug') };
    // Even where nothing is printed for it.
    await expect(show(IDLE)).rejects.toMatchObject(lost);
    await expect(show(PAYMENT)).rejects.toMatchObject(lost);
    await display.close();
    expect(asked()).toBe(1);
    await device.pty.plug();
    device.emulator.restart();
    const again = await openExample(name, device);
    await again.show(PAYMENT);
    await expectPayment(device, again.display.surface);
  });
});

describe.skipIf(socat.missing).each(PANEL_NAMES.filter((name) => !ANSWERING.includes(name)))(
  `the device of the display driver %s, which answers nothing${socat.note}`,
  (name) => {
    it('is named within the time of a draw when it takes no more bytes, and is spent', async () => {
      // Bytes that a stuck port drops in the end are complaints, so this device may have some.
      const device = await onPty(EMULATORS[name]);
      onTestFinished(() => device.pty.close());
      const { show } = await openExample(name, device);
      device.pty.freeze();
      const flood = async () => {
        for (let round = 0; round < FLOOD_MAX; round += 1) {
          await show({ ...PAYMENT, qrCode: payloadOf(280 + (round % 2)), amount: 1 + (round % 2) });
        }
      };
      const message = expect.stringContaining('did not take');
      await expect(flood()).rejects.toMatchObject({ ...FAULT, message, fix: expect.not.stringMatching(/^$/) });
      device.pty.thaw();
      await expect(show(PAYMENT), 'although it listens again').rejects.toMatchObject(FAULT);
    });
  },
);

async function expectPayment(device: Hardware, surface: Surface): Promise<void> {
  // A screen of pixels has no texts: its QR is enough.
  const isPixels = surface.kind === 'pixels';
  const hasAmount = () => device.shownTexts().some((text) => /50\.?000/.test(text));
  await eventually('the payment', () => (isPixels ? device.shownQr() !== undefined : hasAmount()));
  expect(device.shownQr()).toBe(drawsQr(surface) ? PAYMENT.qrCode : undefined);
}
