import { describe, expect, it, onTestFinished } from 'vitest';
import type { PanelEmulator } from '../../src/bench/panels/emulator.ts';
import { PANEL_NAMES, type PanelName } from '../../src/bench/panels/emulator.ts';
import { EscposEmulator } from '../../src/bench/panels/escpos.ts';
import { NextionEmulator } from '../../src/bench/panels/nextion.ts';
import { EMULATORS } from '../../src/bench/panels/panel.ts';
import { DISPLAY_DRIVERS } from '../../src/device/display/registry.ts';
import { glyphCache } from './pictures.ts';
import { PAYMENT, SCENES } from './scenes.ts';
import { type OnSwitch, onSwitch } from './switched.ts';

type Make = (send: (bytes: Uint8Array) => void) => PanelEmulator;

/** A panel that is refreshed has its picture again by then, and one that was opened anew beside. */
const BACK_MS = 60_000;
/** Longer than two refreshes of any driver. */
const AWAY_MS = 40_000;

const source = glyphCache();
const idle = SCENES.idle ?? PAYMENT;

const mute: Make = (send) => {
  const emulator = new NextionEmulator(send);
  emulator.greets = false;
  return emulator;
};

/** Those with a QR, and whether they can be asked: others cannot tell that they have no power. */
const WITH_QR: readonly { title: string; name: PanelName; make: Make; options?: object; tells: boolean }[] = [
  { title: 'nextion', name: 'nextion', make: EMULATORS.nextion, tells: true },
  { title: 'nextion whose HMI file does not greet', name: 'nextion', make: mute, tells: true },
  { title: 'dwin', name: 'dwin', make: EMULATORS.dwin, tells: true },
  { title: 'dqr', name: 'dqr', make: EMULATORS.dqr, tells: false },
  { title: 'usb-bitmap', name: 'usb-bitmap', make: EMULATORS['usb-bitmap'], tells: true },
  { title: 'escpos display', name: 'escpos', make: EMULATORS.escpos, options: { mode: 'show' }, tells: false },
];
const CHARACTERS = ['cd5220', 'matrix-orbital', 'openlcd'] as const;

async function shown(
  name: PanelName,
  make: Make,
  scene = PAYMENT,
  options: object = {},
): Promise<OnSwitch<PanelEmulator>> {
  const on = await onSwitch(name, make, scene, { cacheDir: source.cacheDir, options });
  onTestFinished(() => expect(on.panel.violations).toEqual([]));
  return on;
}

describe.each(WITH_QR)('a $title that loses its power while a QR is on it', ({ name, make, options, tells }) => {
  it('a panel that loses its power shows the QR again once it is back, and is said to have failed while it cannot be asked', async () => {
    const on = await shown(name, make, PAYMENT, options);
    expect(await on.qr()).toBe(PAYMENT.qrCode);
    on.cutPower();
    expect(await on.qr()).toBeUndefined();
    await on.pass(AWAY_MS);
    expect(on.screen.status().ok).toBe(!tells);
    on.restorePower();
    expect(await on.qr()).toBeUndefined();
    await on.within(BACK_MS, 'the QR', async () => (await on.qr()) === PAYMENT.qrCode);
    expect(on.screen.status().ok).toBe(true);
  });

  it.each([
    ['at rest', 0],
    ['while seconds are counted down', 1],
  ])('shows the QR again when power was away for a moment only, %s', async (_, second) => {
    const on = await shown(name, make, PAYMENT, options);
    on.cutPower();
    on.restorePower();
    expect(await on.qr()).toBeUndefined();
    let secondsLeft = PAYMENT.secondsLeft;
    await on.within(BACK_MS, 'the QR', async () => {
      secondsLeft -= second;
      if (second > 0) on.screen.present({ ...PAYMENT, secondsLeft });
      return (await on.qr()) === PAYMENT.qrCode;
    });
  });
});

describe.each(CHARACTERS)('a %s that loses its power', (name) => {
  it('a panel that loses its power shows its page again once it is back', async () => {
    const on = await shown(name, EMULATORS[name]);
    const page = on.panel.shownTexts();
    expect(page.join(' ')).toContain('50.000');
    on.cutPower();
    await on.pass(AWAY_MS);
    on.restorePower();
    expect(on.panel.shownTexts()).not.toEqual(page);
    await on.within(BACK_MS, 'the page', () => on.panel.shownTexts().join() === page.join());
  });
});

describe('an ESC/POS printer that loses its power', () => {
  it('an ESC/POS printer that loses its power prints nothing a second time', async () => {
    const on = await onSwitch('escpos', (send) => new EscposEmulator(send), PAYMENT, source);
    const { slips } = on.panel.emulator;
    expect(slips.map(({ qr }) => qr?.payload)).toEqual([PAYMENT.qrCode]);
    on.written();
    on.cutPower();
    await on.pass(AWAY_MS);
    on.restorePower();
    await on.pass(AWAY_MS);
    on.screen.present({ ...PAYMENT, secondsLeft: 1 });
    await on.pass(AWAY_MS);
    expect(slips).toHaveLength(1);
    expect(on.written()).toBe(0);
  });
});

describe('what a display at rest is sent', () => {
  it.each([
    ['nextion', {}, 17, 5_000],
    ['dwin', {}, 7, 5_000],
    ['cd5220', {}, 48, 10_000],
    ['matrix-orbital', {}, 112, 10_000],
    ['openlcd', {}, 88, 10_000],
    ['dqr', {}, 0, 15_000],
    ['escpos', { mode: 'show' }, 0, 15_000],
    ['escpos', {}, 0, 15_000],
    ['usb-bitmap', {}, 0, 15_000],
  ] as const)('%s %o: at most %i bytes every %i ms while no QR is on it', async (name, options, bytes, everyMs) => {
    const on = await shown(name, EMULATORS[name], idle as typeof PAYMENT, options);
    on.written();
    await on.pass(4 * everyMs + 1_000);
    const written = on.written();
    expect(written).toBeLessThanOrEqual(4 * bytes);
    expect(written > 0).toBe(bytes > 0);
    expect(on.outcomes).toHaveLength(1);
  });

  it.each(['nextion', 'dwin', 'dqr'] as const)('%s: no more than a payment takes, every 5 s', async (name) => {
    const on = await shown(name, EMULATORS[name]);
    on.written();
    await on.pass(16_000);
    expect(on.written()).toBeLessThanOrEqual(PAYMENT.qrCode.length + 60);
    expect(on.outcomes).toHaveLength(1);
  });

  it('a blank display at rest gets no bytes', async () => {
    const on = await shown('cd5220', EMULATORS.cd5220);
    on.screen.present({ kind: 'blank' });
    await on.within(1_000, 'blank', () => on.panel.shownTexts().join('') === '');
    on.written();
    await on.pass(AWAY_MS);
    expect(on.written()).toBe(0);
  });
});

it('the test of power has every driver on a serial port in it', () => {
  const tested = new Set<string>([...WITH_QR.map(({ name }) => name), ...CHARACTERS]);
  expect([...tested].toSorted()).toEqual([...PANEL_NAMES].toSorted());
  expect(PANEL_NAMES.every((name) => DISPLAY_DRIVERS.has(name))).toBe(true);
});
