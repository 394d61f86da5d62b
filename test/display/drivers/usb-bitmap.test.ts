import { createHash } from 'node:crypto';
import { describe, expect, it, onTestFinished } from 'vitest';
import { UsbBitmapEmulator } from '../../../src/bench/panels/usb-bitmap.ts';
import type { PixelFrame } from '../../../src/display/contract.ts';
import { DISPLAY_DRIVERS } from '../../../src/display/registry.ts';
import { openRenderer } from '../../../src/display/render.ts';
import type { Scene } from '../../../src/scene.ts';
import { eventually } from '../../support/net.ts';
import { PROGRAMS, without } from '../../support/programs.ts';
import { onPty } from '../emulators/hardware.ts';
import { openOneWay } from '../one-way.ts';
import { openOn } from '../opened.ts';
import { expectDecodes, expectGolden, glyphCache, type Picture } from '../pictures.ts';
import { PAYMENT, payloadOf, SCENES } from '../scenes.ts';

const { missing, note } = without(PROGRAMS.socat);
const source = glyphCache();
const driver = DISPLAY_DRIVERS.get('usb-bitmap');
const { idle, paid } = SCENES;
if (idle === undefined || paid === undefined) throw new Error('scenes');
const WHOLE_BYTES = 320 * 480 * 2 + 6;
/** Darkest, on, and as bright as configured: around the first picture. */
const LIGHT_BYTES = 18;

async function panel() {
  const hardware = await onPty(() => new UsbBitmapEmulator());
  onTestFinished(async () => {
    await hardware.close();
    expect(hardware.violations()).toEqual([]);
  });
  return hardware;
}

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

describe.skipIf(missing)(`a USB panel that draws bitmaps${note}`, () => {
  it('gets exactly these bytes', async () => {
    const hardware = await panel();
    const { display } = await openOneWay(driver, hardware, {}, source);
    const frame: PixelFrame = {
      kind: 'pixels',
      width: 320,
      height: 480,
      data: new Uint8Array(320 * 480 * 4).fill(255),
    };
    const paint = (x: number, y: number, color: number[]) => frame.data.set([...color, 255], (y * 320 + x) * 4);
    let text = `# opening\n${Buffer.from(hardware.received()).toString('hex')}\n`;
    hardware.forget();
    await display.draw(frame, idle);
    const all = Buffer.from(hardware.received());
    const [dark, whole, light] = [all.subarray(0, 12), all.subarray(12, -6), all.subarray(-6)];
    const digest = createHash('sha256').update(whole.subarray(6)).digest('hex');
    const picture = `${whole.subarray(0, 6).toString('hex')} ${whole.length - 6} bytes, sha256 ${digest}`;
    text += `# all white\n${dark.toString('hex')}\n${picture}\n${light.toString('hex')}\n`;
    hardware.forget();
    paint(319, 479, [255, 0, 0]);
    paint(318, 478, [0, 255, 0]);
    paint(1, 0, [0, 0, 255]);
    paint(2, 3, [8, 4, 8]);
    await display.draw(frame, idle);
    text += `# red, green, blue and the darkest grey\n${Buffer.from(hardware.received()).toString('hex')}\n`;
    hardware.forget();
    await display.close();
    text += `# closing\n${Buffer.from(hardware.received()).toString('hex')}\n`;
    await expectGolden('usb-bitmap-wire', text);
  });

  it.each([94, 142, 220, 280])('shows a code of %i characters that two decoders read', async (length) => {
    const hardware = await panel();
    const { show } = await openOneWay(driver, hardware, {}, source);
    const qrCode = payloadOf(length);
    await show({ ...PAYMENT, qrCode });
    expectDecodes(hardware.emulator.picture(), qrCode);
  });

  it('shows every scene as it was laid out, whatever it showed before', async () => {
    const hardware = await panel();
    const { display, show } = await openOneWay(driver, hardware, {}, source);
    const renderer = await openRenderer(display.surface, source);
    for (const scene of [...Object.values(SCENES), PAYMENT, idle]) {
      await show(scene);
      expect(hardware.emulator.lit).toBe(scene.kind !== 'blank');
      if (scene.kind === 'blank') continue;
      const frame = renderer.render(scene);
      if (frame.kind !== 'pixels') throw new Error('not pixels');
      expect(Buffer.compare(hardware.emulator.picture().data, coarse(frame).data), scene.kind).toBe(0);
    }
  });

  it('shows a landscape picture on a panel that lies on its side', async () => {
    const hardware = await panel();
    const { display, show } = await openOneWay(driver, hardware, { rotation: 90 }, source);
    expect(display.surface).toEqual({ kind: 'pixels', width: 480, height: 320 });
    const renderer = await openRenderer(display.surface, source);
    await show(PAYMENT);
    expectDecodes(hardware.emulator.picture(), PAYMENT.qrCode);
    const frame = renderer.render(PAYMENT);
    if (frame.kind !== 'pixels') throw new Error('not pixels');
    expect(Buffer.compare(hardware.emulator.picture().data, turned(coarse(frame)).data)).toBe(0);
  });

  it('sends the whole picture once, then only what a second changes', async () => {
    const hardware = await panel();
    const { show } = await openOneWay(driver, hardware, {}, source);
    hardware.forget();
    await show(PAYMENT);
    expect(hardware.received().length).toBe(WHOLE_BYTES + LIGHT_BYTES);
    hardware.forget();
    await show({ ...PAYMENT, secondsLeft: PAYMENT.secondsLeft - 1 });
    expect(hardware.received().length).toBeGreaterThan(0);
    expect(hardware.received().length).toBeLessThan(WHOLE_BYTES / 50);
    hardware.forget();
    await show({ ...PAYMENT, secondsLeft: PAYMENT.secondsLeft - 1 });
    expect(hardware.received().length).toBe(0);
  });

  it.each([
    [100, 0],
    [60, 102],
    [0, 255],
  ])('has a brightness of %i percent at level %i', async (brightness, level) => {
    const hardware = await panel();
    const { show } = await openOneWay(driver, hardware, { brightness }, source);
    expect(hardware.emulator.lit, 'dark until there is a picture').toBe(false);
    await show(PAYMENT);
    expect(hardware.emulator).toMatchObject({ level, lit: true });
    await show({ kind: 'blank' });
    expect(hardware.emulator.lit).toBe(false);
    await show(PAYMENT);
    expect(hardware.emulator).toMatchObject({ level, lit: true });
  });

  it.each([
    [{ brightness: 101 }, 'brightness'],
    [{ rotation: 45 }, 'rotation'],
    [{ baudRate: 1 }, 'baudRate'],
    [{ width: 800 }, ''],
  ])('refuses %j by the path', (options, path) => {
    const parsed = driver?.options.safeParse({ path: '/dev/ttyACM0', ...options });
    expect(parsed?.error?.issues[0]?.path.join('.')).toBe(path);
  });
});

describe.skipIf(missing)(`a USB panel with a fault${note}`, () => {
  const named = { code: 'DISPLAY_FAULT', severity: 'retryable', fix: expect.not.stringMatching(/^$/) };

  it('fails within the time of a draw when the panel takes no more bytes, and works when opened again', async () => {
    const hardware = await panel();
    const { display, show } = await openOn(driver, hardware, {}, source);
    hardware.pty.freeze();
    await expect(show(PAYMENT)).rejects.toMatchObject(named);
    hardware.pty.thaw();
    await expect(show(PAYMENT), 'spent, although the panel listens again').rejects.toMatchObject(named);
    await display.close();
    await hardware.unplug();
    await hardware.plug();
    await reopened(hardware);
  });

  it('fails when it is unplugged in the middle of a picture, and works when it is back', async () => {
    const hardware = await panel();
    const { display, show } = await openOn(driver, hardware, {}, source);
    hardware.forget();
    const drawing = expect(show(PAYMENT)).rejects.toMatchObject(named);
    hardware.pty.freeze();
    await hardware.unplug();
    await drawing;
    await display.close();
    await hardware.plug();
    await reopened(hardware);
  });

  it('asks for a drawing when it is unplugged while idle', async () => {
    const hardware = await panel();
    const { show, asked } = await openOneWay(driver, hardware, {}, source);
    await show(idle);
    await hardware.unplug();
    await eventually('the driver asks for a drawing', () => asked() === 1);
    await expect(show(idle)).rejects.toMatchObject(named);
  });

  it('names a port that is not there', async () => {
    const hardware = await panel();
    await hardware.unplug();
    await expect(openOneWay(driver, hardware, {}, source)).rejects.toMatchObject({
      ...named,
      message: expect.stringContaining((hardware.options as { path: string }).path),
    });
  });

  /** A panel that lost its power begins anew. */
  async function reopened(hardware: Awaited<ReturnType<typeof panel>>) {
    hardware.emulator.restart();
    const { show } = await openOneWay(driver, hardware, {}, source);
    await show(paid as Scene);
    await show(PAYMENT);
    expectDecodes(hardware.emulator.picture(), PAYMENT.qrCode);
  }
});
