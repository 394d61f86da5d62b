import { describe, expect, it } from 'vitest';
import { Cd5220Emulator } from '../../../src/bench/panels/cd5220.ts';
import { MatrixOrbitalEmulator } from '../../../src/bench/panels/matrix-orbital.ts';
import { OpenLcdEmulator } from '../../../src/bench/panels/openlcd.ts';
import type { CharacterFrame } from '../../../src/device/display/contract.ts';
import { openRenderer } from '../../../src/device/display/render.ts';
import { anyChar, fc } from '../../support/properties.ts';
import { Cable } from '../emulators/cable.ts';
import type { Make } from '../emulators/hardware.ts';
import { cabled, openOn, scene } from '../opened.ts';
import { textPicture } from '../pictures.ts';
import { anyScene, PAYMENT, QR_CODE, SCENES } from '../scenes.ts';

const idle = scene('idle');

/** A driver, the size of its display, and commands broken off. */
const CD5220 = { name: 'cd5220', halves: ['1b', '1b5141', '1b51414142', '1b2a'] };
const MATRIX_ORBITAL = { name: 'matrix-orbital', halves: ['fe', 'fe47', 'fe4701', 'fe50', '41'] };
const OPENLCD = { name: 'openlcd', halves: ['fe', '7c', '7c18', '7c2b', '7c2b01', '7c2b0102', '41'] };
type Emulator = Cd5220Emulator | MatrixOrbitalEmulator | OpenLcdEmulator;
const DISPLAYS: readonly { name: string; halves: string[]; size: object; make: Make<Emulator> }[] = [
  { ...CD5220, size: {}, make: () => new Cd5220Emulator() },
  { ...MATRIX_ORBITAL, size: {}, make: () => new MatrixOrbitalEmulator() },
  { ...MATRIX_ORBITAL, size: { columns: 16, rows: 2 }, make: () => new MatrixOrbitalEmulator(16, 2) },
  { ...OPENLCD, size: {}, make: () => new OpenLcdEmulator() },
  { ...OPENLCD, size: { size: '16x2' }, make: () => new OpenLcdEmulator(16, 2) },
];

describe.each(DISPLAYS)('the character display $name $size', ({ name, size, make, halves }) => {
  async function opened() {
    const { panel, cable, open } = cabled(name, make);
    const { display, show } = await open(size);
    const { surface } = display;
    if (surface.kind !== 'characters') throw new Error('not characters');
    const renderer = await openRenderer(surface, { cacheDir: '/nowhere' });
    const { columns, rows } = surface;
    /** Draws this text, cut to the size, whatever the layout would make of it. */
    const drawText = (text: string) => {
      const chars = Array.from({ length: columns * rows }, (_, at) => text.charAt(at) || ' ');
      const cells = chars.map((char) => ({ char, ink: 0, paper: 0xffffff }));
      return display.draw({ kind: 'characters', columns, rows, cells } satisfies CharacterFrame, idle);
    };
    return { panel, cable, show, renderer, drawText };
  }

  it('a character display shows every scene as it was laid out', async () => {
    const { panel, show, renderer } = await opened();
    for (const scene of Object.values(SCENES)) {
      await show(scene);
      const frame = renderer.render(scene);
      if (frame.kind !== 'characters') throw new Error('not characters');
      const text = textPicture(frame).replaceAll('\\', '/');
      const laidOut = (name === 'cd5220' ? text : text.replaceAll('~', '.')).split('\n');
      expect(panel.shownTexts()).toEqual(panel.shownTexts().map((_, row) => laidOut[row] ?? ''));
    }
  });

  it('a character display shows the amount and the content of a payment, and says that it has no QR', async () => {
    const { panel, show, renderer } = await opened();
    await show(PAYMENT);
    expect(panel.shownTexts()[0]).toMatch(/^50\.000 d/);
    expect(panel.shownTexts().join(' ')).toContain('Thanh toan');
    expect(renderer.checkQr(QR_CODE)).toEqual({ ok: false, reason: expect.stringContaining('characters only') });
  });

  it('a character display gets only what a second changes', async () => {
    const { cable, show } = await opened();
    await show(PAYMENT);
    cable.written();
    await show({ ...PAYMENT, secondsLeft: PAYMENT.secondsLeft - 1 });
    expect(cable.written().length).toBeLessThanOrEqual(name === 'cd5220' ? 24 : 5);
    await show({ ...PAYMENT, secondsLeft: PAYMENT.secondsLeft - 1 });
    expect(cable.written().length).toBe(0);
  });

  it('a character display accepts any scene, and any text on a page, without a violation', async () => {
    const { panel, show, drawText } = await opened();
    await fc.assert(
      fc.asyncProperty(anyScene, async (scene) => {
        await show(scene);
        expect(panel.violations).toEqual([]);
      }),
      { numRuns: 40 },
    );
    const any = fc.string({
      unit: fc.oneof(
        fc.string({ unit: anyChar, minLength: 1, maxLength: 1 }),
        fc.constantFrom(...'\x1b\x0c\r|\xfe|\\~^\x7f'),
      ),
      minLength: 40,
    });
    await fc.assert(
      fc.asyncProperty(any, async (text) => {
        await drawText(text);
        expect(panel.violations).toEqual([]);
      }),
      { numRuns: 100 },
    );
  });

  it('a character display draws a `?` for what it does not have, and lets no command through', async () => {
    const { panel, drawText } = await opened();
    await drawText('a\u00ffb\x1b@c\nd\u20ab');
    expect(panel.shownTexts()[0]).toBe('a?b?@c?d?');
  });

  it.each(halves)('a character display is right after another program that stopped after %s', async (half) => {
    const cable = new Cable(make);
    cable.panel.receive(Buffer.from(half, 'hex'));
    const { show } = await openOn(name, size, { openSerial: () => cable.open() });
    await show(PAYMENT);
    expect(cable.panel.shownTexts()[0]).toMatch(/^50\.000 d/);
  });
});

describe('character displays', () => {
  it.each<[string, object, object, object, Make<Emulator>]>([
    ['cd5220', { brightness: 4 }, { brightness: 2 }, { brightness: 2 }, () => new Cd5220Emulator()],
    [
      'matrix-orbital',
      { lit: true, contrast: 128, brightness: 255 },
      { contrast: 90, brightness: 7 },
      { lit: true, contrast: 90, brightness: 7 },
      () => new MatrixOrbitalEmulator(),
    ],
    [
      'openlcd',
      { contrast: undefined, backlight: undefined },
      { contrast: 40, backlight: [1, 2, 255] },
      { contrast: 40, backlight: [1, 2, 255] },
      () => new OpenLcdEmulator(),
    ],
  ])('%s are set to %o, and are left as they are where nothing is given', async (name, usual, options, set, make) => {
    const { panel, open } = cabled(name, make);
    const { display } = await open(Object.fromEntries(Object.keys(options).map((key) => [key, undefined])));
    expect(panel).toMatchObject(usual);
    await display.close();
    await open(options);
    expect(panel).toMatchObject(set);
  });
});
