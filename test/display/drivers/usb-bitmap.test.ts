import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { UsbBitmapEmulator } from '../../../src/bench/panels/usb-bitmap.ts';
import type { PixelFrame } from '../../../src/device/display/contract.ts';
import { openRenderer } from '../../../src/device/display/render.ts';
import type {} from '../../../src/device/scene.ts';
import { eventually } from '../../support/net.ts';
import { PROGRAMS, without } from '../../support/programs.ts';
import { cabled, openOn, plugged, scene } from '../opened.ts';
import { expectDecodes, expectGolden, glyphCache, type Picture } from '../pictures.ts';
import { PAYMENT, payloadOf, SCENES } from '../scenes.ts';

const socat = without(PROGRAMS.socat);
const source = glyphCache();
const idle = scene('idle');
const WHOLE_BYTES = 320 * 480 * 2 + 6;
/** Darkest, on, and as bright as configured: around the first picture. */
const LIGHT_BYTES = 18;

const device = () => cabled('usb-bitmap', () => new UsbBitmapEmulator());

/** The picture as RGB565 leaves it. */
function coarse({ width, height, data }: PixelFrame): Picture {
  const bits = (value: number, max: number) => Math.round((Math.floor((value * (max + 1)) / 256) * 255) / max);
  return { width, height, data: data.map((value, at) => (at % 4 === 3 ? 255 : bits(value, at % 4 === 1 ? 63 : 31))) };
}

function turned({ width, height, data }: Picture): Picture {
  const from = new Uint32Array(data.buffer);
  const words = Uint32Array.from(from, (_, at) => {
    const [x, y] = [at % height, Math.floor(at / height)];
    return from[(height - 1 - x) * width + y] ?? 0;
  });
  return { width: height, height: width, data: new Uint8Array(words.buffer) };
}

describe('a USB panel that draws bitmaps', () => {
  it('a USB panel gets exactly these bytes', async () => {
    const { cable, open } = device();
    const { display } = await open({}, source);
    const frame: PixelFrame = {
      kind: 'pixels',
      width: 320,
      height: 480,
      data: new Uint8Array(320 * 480 * 4).fill(255),
    };
    const paint = (x: number, y: number, color: number[]) => frame.data.set([...color, 255], (y * 320 + x) * 4);
    let text = `# opening\n${cable.written().toString('hex')}\n`;
    await display.draw(frame, idle);
    const all = cable.written();
    const [dark, whole, light] = [all.subarray(0, 12), all.subarray(12, -6), all.subarray(-6)];
    const digest = createHash('sha256').update(whole.subarray(6)).digest('hex');
    const picture = `${whole.subarray(0, 6).toString('hex')} ${whole.length - 6} bytes, sha256 ${digest}`;
    text += `# all white\n${dark.toString('hex')}\n${picture}\n${light.toString('hex')}\n`;
    paint(319, 479, [255, 0, 0]);
    paint(318, 478, [0, 255, 0]);
    paint(1, 0, [0, 0, 255]);
    paint(2, 3, [8, 4, 8]);
    await display.draw(frame, idle);
    text += `# red, green, blue and the darkest grey\n${cable.written().toString('hex')}\n`;
    await display.close();
    text += `# closing\n${cable.written().toString('hex')}\n`;
    await expectGolden('usb-bitmap-wire', text);
  });

  it.each([94, 142, 220, 280])('a USB panel shows a code of %i characters that two decoders read', async (length) => {
    const { panel, open } = device();
    const { show } = await open({}, source);
    const qrCode = payloadOf(length);
    await show({ ...PAYMENT, qrCode });
    expectDecodes(panel.picture(), qrCode);
  });

  it('a USB panel shows every scene as it was laid out, whatever it showed before', async () => {
    const { panel, open } = device();
    const { display, show } = await open({}, source);
    const renderer = await openRenderer(display.surface, source);
    for (const scene of [...Object.values(SCENES), PAYMENT, idle]) {
      await show(scene);
      expect(panel.lit).toBe(scene.kind !== 'blank');
      if (scene.kind === 'blank') continue;
      const frame = renderer.render(scene);
      if (frame.kind !== 'pixels') throw new Error('not pixels');
      expect(Buffer.compare(panel.picture().data, coarse(frame).data), scene.kind).toBe(0);
    }
  });

  it('a USB panel that lies on its side shows a landscape picture', async () => {
    const { panel, open } = device();
    const { display, show } = await open({ rotation: 90 }, source);
    expect(display.surface).toEqual({ kind: 'pixels', width: 480, height: 320 });
    const renderer = await openRenderer(display.surface, source);
    await show(PAYMENT);
    expectDecodes(panel.picture(), PAYMENT.qrCode);
    const frame = renderer.render(PAYMENT);
    if (frame.kind !== 'pixels') throw new Error('not pixels');
    expect(Buffer.compare(panel.picture().data, turned(coarse(frame)).data)).toBe(0);
  });

  it('a USB panel gets the whole picture once, then only what a second changes', async () => {
    const { cable, open } = device();
    const { show } = await open({}, source);
    cable.written();
    await show(PAYMENT);
    expect(cable.written()).toHaveLength(WHOLE_BYTES + LIGHT_BYTES);
    await show({ ...PAYMENT, secondsLeft: PAYMENT.secondsLeft - 1 });
    const { length } = cable.written();
    expect(length).toBeGreaterThan(0);
    expect(length).toBeLessThan(WHOLE_BYTES / 50);
    await show({ ...PAYMENT, secondsLeft: PAYMENT.secondsLeft - 1 });
    expect(cable.written()).toHaveLength(0);
  });

  it.each([
    [100, 0],
    [60, 102],
    [0, 255],
  ])('has a brightness of %i percent at level %i', async (brightness, level) => {
    const { panel, open } = device();
    const { show } = await open({ brightness }, source);
    expect(panel.lit, 'dark until there is a picture').toBe(false);
    await show(PAYMENT);
    expect(panel).toMatchObject({ level, lit: true });
    await show({ kind: 'blank' });
    expect(panel.lit).toBe(false);
    await show(PAYMENT);
    expect(panel).toMatchObject({ level, lit: true });
  });
});

describe.skipIf(socat.missing)(`a USB panel with a fault${socat.note}`, () => {
  it('a USB panel fails when it is unplugged in the middle of a picture, and works when it is back', async () => {
    const hardware = await plugged(() => new UsbBitmapEmulator());
    const { display, show } = await openOn('usb-bitmap', hardware.options, source);
    const drawing = expect(show(PAYMENT)).rejects.toMatchObject({ code: 'DISPLAY_FAULT', severity: 'retryable' });
    hardware.pty.freeze();
    await hardware.pty.unplug();
    await drawing;
    await display.close();
    await hardware.pty.plug();
    // A panel that lost its power begins anew.
    hardware.emulator.restart();
    const again = await openOn('usb-bitmap', hardware.options, source);
    await again.show(PAYMENT);
    await eventually('the payment', () => hardware.shownQr() === PAYMENT.qrCode);
    expectDecodes(hardware.emulator.picture(), PAYMENT.qrCode);
  });
});
