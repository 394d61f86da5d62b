import { describe, expect, it } from 'vitest';
import { DwinEmulator } from '../../../src/bench/panels/dwin.ts';
import { type HmiPage, NextionEmulator } from '../../../src/bench/panels/nextion.ts';
import { clean, type Garble } from '../emulators/cable.ts';
import { shownQr } from '../emulators/hardware.ts';
import { scene } from '../opened.ts';
import { PAYMENT, payloadOf } from '../scenes.ts';
import { expectShownQrs, longOnly, noise, open, PANELS, QR_CHARS, type Wired, wired } from './noise-fixture.ts';

/** Other bytes for the first so many that are long, and how many were. */
function firstLong(times: number, garble: Garble): { garble: Garble; count(): number } {
  let count = 0;
  const counted = longOnly((bytes) => {
    count += 1;
    return count > times ? bytes : garble(bytes);
  });
  return { garble: counted, count: () => count };
}

/** One letter of the QR is another. */
const oneLetter: Garble = (bytes) => bytes.with(QR_CHARS / 2, (bytes[QR_CHARS / 2] ?? 0) ^ 1);
const WITH_QR = { ...PAYMENT, qrCode: payloadOf(QR_CHARS) };

describe.each(PANELS)('noise on the wire of a %s panel', (...panel) => {
  const [title, name, make, options] = panel;

  it(`a noisy ${title} wire ends no draw well that does not show its QR, by seed 1`, () => expectShownQrs(panel, 1));

  it('a panel on a noisy wire has a QR that came garbled written again', async () => {
    const away = firstLong(2, oneLetter);
    const panel = wired(name, make, options, { away: away.garble, back: clean });
    const display = await open(panel);
    expect(await panel.drawn(display, WITH_QR)).toMatchObject({ status: 'fulfilled' });
    expect(shownQr(panel.emulator)).toBe(WITH_QR.qrCode);
    expect(away.count()).toBe(3);
  });

  it('a panel on a noisy wire refuses by name when the QR never comes as it was sent', async () => {
    const words = title === 'DWIN with CRC' ? /did not acknowledge/ : /does not hold its QR/;
    const writesMax = title === 'Nextion' ? 12 : 8;
    const away = firstLong(Number.POSITIVE_INFINITY, oneLetter);
    const panel = wired(name, make, options, { away: away.garble, back: clean });
    const display = await open(panel);
    expect(await panel.drawn(display, WITH_QR)).toMatchObject({
      status: 'rejected',
      reason: { code: 'DISPLAY_FAULT', severity: 'retryable', message: expect.stringMatching(words) },
    });
    expect(away.count()).toBe(writesMax);
  });

  it('a panel on a noisy wire is asked again when one question at rest is lost, and has failed when none is answered', async () => {
    let toLose = 0;
    const away: Garble = (bytes) => {
      toLose -= 1;
      return toLose < 0 ? bytes : new Uint8Array();
    };
    const panel = wired(name, make, options, { away, back: clean });
    const display = await open(panel);
    expect(await panel.drawn(display, WITH_QR)).toMatchObject({ status: 'fulfilled' });
    toLose = 1;
    expect(await panel.refreshed(display, WITH_QR)).toMatchObject({ status: 'fulfilled' });
    toLose = Number.POSITIVE_INFINITY;
    const failed = {
      status: 'rejected',
      reason: { code: 'DISPLAY_FAULT', severity: 'retryable', message: expect.stringContaining('did not answer') },
    };
    expect(await panel.refreshed(display, WITH_QR)).toMatchObject(failed);
    toLose = 0;
    expect(await panel.drawn(display, WITH_QR), 'it is spent').toMatchObject(failed);
  });

  it.each([
    ['garbled', oneLetter],
    ['behind the head of one that never comes', (bytes) => Uint8Array.of(0x5a, 0xa5, 0xfe, 0x83, ...bytes)],
    ['behind other bytes', (bytes) => Uint8Array.of(0x12, 0xff, 0x5a, ...bytes)],
    ['without its end', (bytes) => bytes.slice(0, -3)],
  ] satisfies [string, Garble][])(
    'reads again when the answer comes %s, and writes nothing again',
    async (_, garble) => {
      const away = firstLong(0, clean);
      const back = firstLong(1, garble);
      const panel = wired(name, make, options, { away: away.garble, back: back.garble });
      const display = await open(panel);
      expect(await panel.drawn(display, WITH_QR)).toMatchObject({ status: 'fulfilled' });
      expect(away.count()).toBe(1);
      expect(await panel.drawn(display, { ...WITH_QR, secondsLeft: 9 })).toMatchObject({ status: 'fulfilled' });
      expect(await panel.drawn(display, scene('paid'))).toMatchObject({ status: 'fulfilled' });
      expect(shownQr(panel.emulator)).toBeUndefined();
    },
  );
});

describe('the cause of a failure of a Nextion panel', () => {
  const nextion = (hmi: readonly HmiPage[] | undefined, garble: { away?: Garble; back?: Garble }) =>
    wired('nextion', (send) => new NextionEmulator(send, hmi), {}, { away: clean, back: clean, ...garble });
  const failureOf = async (panel: Wired) => panel.drawn(await open(panel), PAYMENT);

  it('the cause of a failure of a Nextion panel is the HMI file, also on a line that is a little noisy', async () => {
    const page = { name: 'main', texts: { t0: 100 }, qr: null };
    const panel = nextion([page], { away: noise(0.3, 1), back: noise(0.3, 2) });
    expect(await failureOf(panel)).toMatchObject({
      reason: { message: expect.stringContaining('the HMI file has no') },
    });
  });

  it('the cause of a failure of a Nextion panel is the line, where the panel answers otherwise each time', async () => {
    let count = 0;
    // Codes of refusals in turn, for whatever the panel was told.
    const back: Garble = (bytes) => {
      count += 1;
      return bytes.length === 4 ? bytes.with(0, [0x00, 0x1b, 0x1c, 0x1e][count % 4] ?? 0) : bytes;
    };
    let isOpen = false;
    const panel = nextion(undefined, { back: (bytes) => (isOpen ? back(bytes) : bytes) });
    const display = await open(panel);
    isOpen = true;
    expect(await panel.drawn(display, PAYMENT)).toMatchObject({
      status: 'rejected',
      reason: {
        message: expect.stringMatching(/is noisy: it did not take page/),
        fix: expect.stringContaining('ground'),
      },
    });
    expect(panel.events).toContain('panel-line-disturbed');
  });

  it('a Nextion panel logs noise that it has overcome, once a minute', async () => {
    const panel = nextion(undefined, { away: noise(0.5, 3), back: noise(0.5, 4) });
    const display = await open(panel);
    const beganMs = panel.clock.monotonicMs();
    for (let second = 100; second > 0; second -= 1) {
      const counted = { ...PAYMENT, secondsLeft: second };
      expect(await panel.drawn(display, counted)).toMatchObject({ status: 'fulfilled' });
      await panel.clock.advance(1_000);
    }
    const minutes = Math.ceil((panel.clock.monotonicMs() - beganMs) / 60_000);
    const lines = panel.events.filter((event) => event === 'panel-line-disturbed');
    expect(lines.length).toBeGreaterThan(0);
    expect(lines.length).toBeLessThanOrEqual(minutes);
  });
});

describe('noise in an amount on the wire of a DWIN panel', () => {
  /** The first so many writes of an amount are of another, which a panel without CRC acknowledges. */
  const otherAmounts = (times: number) => {
    const [right, wrong] = ['50.000', '90.000'].map((text) => Buffer.from(text, 'utf16le').swap16().toString('hex'));
    let count = 0;
    const garble: Garble = (bytes) => {
      const hex = Buffer.from(bytes).toString('hex');
      if (!hex.includes(`${right}`)) return bytes;
      count += 1;
      return count > times ? bytes : Buffer.from(hex.replace(`${right}`, `${wrong}`), 'hex');
    };
    const panel = wired('dwin', (send) => new DwinEmulator(send), {}, { away: garble, back: clean });
    return { panel, count: () => count };
  };

  it('a DWIN panel on a noisy wire has an amount that came garbled written again', async () => {
    const { panel, count } = otherAmounts(2);
    const display = await open(panel);
    expect(await panel.drawn(display, WITH_QR)).toMatchObject({ status: 'fulfilled' });
    expect(panel.emulator.shownTexts()[1]).toBe('50.000 ₫');
    expect(count()).toBe(3);
  });

  it('a DWIN panel on a noisy wire refuses by name when the amount never comes as it was sent', async () => {
    const { panel, count } = otherAmounts(Number.POSITIVE_INFINITY);
    const display = await open(panel);
    expect(await panel.drawn(display, WITH_QR)).toMatchObject({
      status: 'rejected',
      reason: { code: 'DISPLAY_FAULT', message: expect.stringContaining('does not hold its amount') },
    });
    expect(count()).toBe(8);
  });
});
