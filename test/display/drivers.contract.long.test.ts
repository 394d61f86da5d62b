import { describe, expect, it, onTestFinished } from 'vitest';
import { PANEL_NAMES } from '../../src/bench/panels/emulator.ts';
import { EMULATORS } from '../../src/bench/panels/panel.ts';
import { eventually } from '../support/net.ts';
import { type Hardware, onPty } from './emulators/hardware.ts';
import { plugged, scene } from './opened.ts';
import { drawsQr, expectPayment, FAULT, openExample, openPlugged, socat } from './opened-example.ts';
import { ENROL, PAYMENT, payloadOf } from './scenes.ts';

const IDLE = scene('idle');
const PAID = scene('paid');
const BLANK = { kind: 'blank' } as const;
/** Those that are asked before or after they draw: their own tests say what happens when they do not answer. */
const ANSWERING: readonly string[] = ['nextion', 'dwin', 'escpos'];
const SILENCE_MS = 300;
/** More drawings than any buffer of a port holds. */
const FLOOD_MAX = 10_000;

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

describe.skipIf(socat.missing).each(PANEL_NAMES)(`the device of the display driver %s${socat.note}`, (name) => {
  it('a display leaves no QR behind when it is closed', async () => {
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

  it('a display shows the code by which a box is enrolled, and clears it when it is closed', async () => {
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

  it('a display leaves everything else where it is when it is closed', async () => {
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

  it('a display shows nothing while it is blank', async () => {
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

  it('a display that is not there is named by its port, with what to do', async () => {
    const device = await plugged(EMULATORS[name]);
    await device.pty.unplug();
    await expect(openExample(name, device)).rejects.toMatchObject({
      ...FAULT,
      message: expect.stringContaining(device.options.path),
      fix: expect.stringMatching(/plug the device in.*\/dev\/serial\/by-id/),
    });
  });

  it('a display that another program has open is named', async () => {
    const { device } = await openPlugged(name);
    await expect(openExample(name, device)).rejects.toMatchObject({
      ...FAULT,
      fix: expect.stringContaining('another program'),
    });
  });

  it('a display may be unplugged while idle: it asks for a drawing, which names it, and works once it is back', async () => {
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
    it('a display that reads no more bytes is named within the time of a draw, and is spent', async () => {
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
