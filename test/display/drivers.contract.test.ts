import { describe, expect, it } from 'vitest';
import { ZodError } from 'zod';
import { isPanelName, PANEL_NAMES } from '../../src/bench/panels/emulator.ts';
import { DISPLAY_DRIVERS } from '../../src/device/display/registry.ts';
import { drawsQr, expectPayment, FAULT, openExample, openPlugged, socat } from './opened-example.ts';
import { PAYMENT, SCENES } from './scenes.ts';

const noPort = (name: string) => isPanelName(name) && socat.missing;

describe.each([...DISPLAY_DRIVERS.keys()])('the display driver %s', (name) => {
  const drawing = it.skipIf(noPort(name));
  const note = noPort(name) ? socat.note : '';

  it('a display driver is registered under its own name, with a summary and an example that its options accept', () => {
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

  it('a display driver refuses options that it does not know, and names them', () => {
    const driver = DISPLAY_DRIVERS.get(name);
    const configure = () => driver?.configure({ ...(driver.example as object), widht: 3 });
    expect(configure).toThrow(ZodError);
    expect(configure).toThrow('widht');
  });
});

describe.skipIf(socat.missing).each(PANEL_NAMES)(`the device of the display driver %s${socat.note}`, (name) => {
  it('a display shows what is drawn: the content, and the QR where it has one', async () => {
    const { device, show, display } = await openPlugged(name);
    await show(PAYMENT);
    await expectPayment(device, display.surface);
  });
});
