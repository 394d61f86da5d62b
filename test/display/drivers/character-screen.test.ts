import { describe, expect, it, onTestFinished } from 'vitest';
import { Cd5220Emulator } from '../../../src/bench/panels/cd5220.ts';
import { MatrixOrbitalEmulator } from '../../../src/bench/panels/matrix-orbital.ts';
import { OpenLcdEmulator } from '../../../src/bench/panels/openlcd.ts';
import type { CharacterFrame } from '../../../src/display/contract.ts';
import { DISPLAY_DRIVERS } from '../../../src/display/registry.ts';
import { openRenderer } from '../../../src/display/render.ts';
import type { Scene } from '../../../src/scene.ts';
import { eventually } from '../../support/net.ts';
import { PROGRAMS, without } from '../../support/programs.ts';
import { fc } from '../../support/properties.ts';
import { onPty } from '../emulators/hardware.ts';
import { openOneWay } from '../one-way.ts';
import { openOn, wireOf } from '../opened.ts';
import { expectGolden, textPicture } from '../pictures.ts';
import { anyScene, PAYMENT, QR_CODE, SCENES } from '../scenes.ts';

const { missing, note } = without(PROGRAMS.socat);
const { idle, paid } = SCENES;
/** More drawings than any buffer of a port holds. */
const FLOOD_MAX = 10_000;
if (idle === undefined || paid === undefined) throw new Error('scenes');

interface Each {
  name: string;
  size: object;
  make: () => Cd5220Emulator | MatrixOrbitalEmulator | OpenLcdEmulator;
}

const DISPLAYS: readonly Each[] = [
  { name: 'cd5220', size: {}, make: () => new Cd5220Emulator() },
  { name: 'matrix-orbital', size: {}, make: () => new MatrixOrbitalEmulator() },
  { name: 'matrix-orbital', size: { columns: 16, rows: 2 }, make: () => new MatrixOrbitalEmulator(16, 2) },
  { name: 'openlcd', size: {}, make: () => new OpenLcdEmulator() },
  { name: 'openlcd', size: { size: '16x2' }, make: () => new OpenLcdEmulator(16, 2) },
];

async function plugged({ name, make }: Each) {
  const hardware = await onPty(make);
  onTestFinished(async () => {
    await hardware.close();
    expect(hardware.violations()).toEqual([]);
  });
  return { hardware, driver: DISPLAY_DRIVERS.get(name) };
}

/** Commands broken off, by the driver's name. */
const HALVES: Readonly<Record<string, readonly string[]>> = {
  cd5220: ['1b', '1b5141', '1b51414142', '1b2a'],
  'matrix-orbital': ['fe', 'fe47', 'fe4701', 'fe50', '41'],
  openlcd: ['fe', '7c', '7c18', '7c2b', '7c2b01', '7c2b0102', '41'],
};

/** A page that shows this text, cut to the size, whatever the layout would make of it. */
function pageOf(text: string, columns: number, rows: number): CharacterFrame {
  const chars = Array.from({ length: columns * rows }, (_, at) => text.charAt(at) || ' ');
  return { kind: 'characters', columns, rows, cells: chars.map((char) => ({ char, ink: 0, paper: 0xffffff })) };
}

describe.skipIf(missing).each(DISPLAYS)(`the character display $name $size${note}`, (each) => {
  it('shows every scene as it was laid out', async () => {
    const { hardware, driver } = await plugged(each);
    const { display, show } = await openOneWay(driver, hardware, each.size);
    const renderer = await openRenderer(display.surface, { cacheDir: '/nowhere' });
    for (const scene of Object.values(SCENES)) {
      await show(scene);
      const frame = renderer.render(scene);
      if (frame.kind !== 'characters') throw new Error('not characters');
      const text = textPicture(frame).replaceAll('\\', '/');
      const laidOut = (each.name === 'cd5220' ? text : text.replaceAll('~', '.')).split('\n');
      expect(hardware.shownTexts()).toEqual(hardware.shownTexts().map((_, row) => laidOut[row] ?? ''));
    }
  });

  it('shows the amount and the content of a payment, and says that it has no QR', async () => {
    const { hardware, driver } = await plugged(each);
    const { display, show } = await openOneWay(driver, hardware, each.size);
    await show(PAYMENT);
    expect(hardware.shownTexts()[0]).toMatch(/^50\.000 d/);
    expect(hardware.shownTexts().join(' ')).toContain('Thanh toan');
    const renderer = await openRenderer(display.surface, { cacheDir: '/nowhere' });
    expect(renderer.checkQr(QR_CODE)).toEqual({ ok: false, reason: expect.stringContaining('characters only') });
  });

  it('writes only what a second changes', async () => {
    const { hardware, driver } = await plugged(each);
    const { show } = await openOneWay(driver, hardware, each.size);
    await show(PAYMENT);
    hardware.forget();
    await show({ ...PAYMENT, secondsLeft: PAYMENT.secondsLeft - 1 });
    expect(hardware.received().length).toBeLessThanOrEqual(each.name === 'cd5220' ? 24 : 5);
    hardware.forget();
    await show({ ...PAYMENT, secondsLeft: PAYMENT.secondsLeft - 1 });
    expect(hardware.received().length).toBe(0);
  });

  it('takes any scene, and any text on a page, without a violation', async () => {
    const { hardware, driver } = await plugged(each);
    const { display, show } = await openOneWay(driver, hardware, each.size);
    const { surface } = display;
    if (surface.kind !== 'characters') throw new Error('not characters');
    await fc.assert(
      fc.asyncProperty(anyScene, async (scene) => {
        await show(scene);
        expect(hardware.violations()).toEqual([]);
      }),
      { numRuns: 40 },
    );
    const any = fc.string({
      unit: fc.oneof(
        fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
        fc.constantFrom(...'\x1b\x0c\r|\xfe|\\~^\x7f'),
      ),
      minLength: 40,
    });
    await fc.assert(
      fc.asyncProperty(any, async (text) => {
        await display.draw(pageOf(text, surface.columns, surface.rows), idle);
        expect(hardware.violations()).toEqual([]);
      }),
      { numRuns: 100 },
    );
  });

  it('draws a `?` for what it does not have, and lets no command through', async () => {
    const { hardware, driver } = await plugged(each);
    const { display } = await openOneWay(driver, hardware, each.size);
    const { surface } = display;
    if (surface.kind !== 'characters') throw new Error('not characters');
    await display.draw(pageOf('a\u00ffb\x1b@c\nd\u20ab', surface.columns, surface.rows), idle);
    expect(hardware.shownTexts()[0]).toBe('a?b?@c?d?');
  });

  it('is right after another program that stopped in the middle of anything', async () => {
    const hardware = await onPty(each.make);
    onTestFinished(() => hardware.close());
    for (const half of HALVES[each.name] ?? []) {
      hardware.emulator.receive(Buffer.from(half, 'hex'));
      const { display, show } = await openOneWay(DISPLAY_DRIVERS.get(each.name), hardware, each.size);
      await show(PAYMENT);
      expect(hardware.shownTexts()[0], half).toMatch(/^50\.000 d/);
      await display.close();
    }
  });

  it('names an unplug while idle: it asks for a drawing, which fails, and a fresh opening works', async () => {
    const { hardware, driver } = await plugged(each);
    const { show, asked, display } = await openOneWay(driver, hardware, each.size);
    await show(idle);
    await hardware.unplug();
    await eventually('the driver asks for a drawing', () => asked() === 1);
    const named = { code: 'DISPLAY_FAULT', severity: 'retryable', fix: expect.stringContaining('plug') };
    await expect(show(PAYMENT)).rejects.toMatchObject(named);
    await expect(show(PAYMENT)).rejects.toMatchObject(named);
    await display.close();
    expect(asked()).toBe(1);
    await hardware.plug();
    const again = await openOneWay(driver, hardware, each.size);
    await again.show(PAYMENT);
    expect(hardware.shownTexts()[0]).toMatch(/^50\.000 d/);
  });

  it('names a port that is not there, with what to do', async () => {
    const { hardware, driver } = await plugged(each);
    await hardware.unplug();
    await expect(openOneWay(driver, hardware, each.size)).rejects.toMatchObject({
      code: 'DISPLAY_FAULT',
      message: expect.stringContaining((hardware.options as { path: string }).path),
      fix: expect.stringContaining('/dev/serial/by-id'),
    });
  });

  it('fails within the time of a draw when the device takes no more bytes', async () => {
    const { hardware, driver } = await plugged(each);
    const { show } = await openOn(driver, hardware, each.size);
    hardware.pty.freeze();
    const flood = async () => {
      for (let round = 0; round < FLOOD_MAX; round += 1) await show(round % 2 === 0 ? PAYMENT : paid);
    };
    await expect(flood()).rejects.toMatchObject({ code: 'DISPLAY_FAULT', fix: expect.not.stringMatching(/^$/) });
  });
});

describe.skipIf(missing)(`what character displays are sent${note}`, () => {
  it.each(DISPLAYS)('$name $size: exactly these bytes', async (each) => {
    const { hardware, driver } = await plugged(each);
    let close = async () => {};
    const steps = {
      opening: async () => {
        const { display, show } = await openOneWay(driver, hardware, each.size);
        close = () => display.close();
        draw = show;
      },
      idle: () => draw(idle),
      payment: () => draw(PAYMENT),
      'a second later': () => draw({ ...PAYMENT, secondsLeft: PAYMENT.secondsLeft - 1 }),
      paid: () => draw(paid),
      closing: () => close(),
    };
    let draw: (scene: Scene) => Promise<void> = async () => {};
    const size = Object.values(each.size).join('x');
    await expectGolden(`${each.name}${size && `-${size}`}-wire`, await wireOf(hardware, steps));
  });

  it('cd5220 sets the brightness as told', async () => {
    const emulator = new Cd5220Emulator();
    const { hardware, driver } = await plugged({ name: 'cd5220', size: {}, make: () => emulator });
    await openOneWay(driver, hardware, { brightness: 2 });
    expect(emulator.brightness).toBe(2);
  });

  it('matrix-orbital sets light and contrast as told, and leaves what is not given', async () => {
    const emulator = new MatrixOrbitalEmulator();
    const { hardware, driver } = await plugged({ name: 'matrix-orbital', size: {}, make: () => emulator });
    const { display } = await openOneWay(driver, hardware, { contrast: undefined, brightness: undefined });
    expect(emulator).toMatchObject({ lit: true, contrast: 128, brightness: 255 });
    await display.close();
    await openOneWay(driver, hardware, { contrast: 90, brightness: 7 });
    expect(emulator).toMatchObject({ lit: true, contrast: 90, brightness: 7 });
  });

  it('openlcd sets backlight and contrast as told, and leaves what is not given', async () => {
    const emulator = new OpenLcdEmulator();
    const { hardware, driver } = await plugged({ name: 'openlcd', size: {}, make: () => emulator });
    const { display } = await openOneWay(driver, hardware, { contrast: undefined, backlight: undefined });
    expect([emulator.contrast, emulator.backlight]).toEqual([undefined, undefined]);
    await display.close();
    await openOneWay(driver, hardware, { contrast: 40, backlight: [1, 2, 255] });
    expect([emulator.contrast, emulator.backlight]).toEqual([40, [1, 2, 255]]);
  });

  it.each([
    ['cd5220', { baudRate: 9601 }, 'baudRate'],
    ['cd5220', { brightness: 5 }, 'brightness'],
    ['cd5220', { columns: 40 }, ''],
    ['matrix-orbital', { rows: 5 }, 'rows'],
    ['matrix-orbital', { contrast: 256 }, 'contrast'],
    ['openlcd', { size: '40x2' }, 'size'],
    ['openlcd', { path: '' }, 'path'],
  ])('%s refuses %j by the path', (name, options, path) => {
    const parsed = DISPLAY_DRIVERS.get(name)?.options.safeParse({ path: '/dev/ttyUSB0', ...options });
    expect(parsed?.error?.issues[0]?.path.join('.')).toBe(path);
  });
});
