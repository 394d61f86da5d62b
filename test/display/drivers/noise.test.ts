import { describe, expect, it } from 'vitest';
import { DwinEmulator, PROJECT } from '../../../src/bench/panels/dwin.ts';
import type { PanelEmulator } from '../../../src/bench/panels/emulator.ts';
import { NextionEmulator } from '../../../src/bench/panels/nextion.ts';
import type { Display, DisplayIo } from '../../../src/display/contract.ts';
import { openRenderer } from '../../../src/display/render.ts';
import { seededRandom } from '../../../src/lib/random.ts';
import { VirtualClock } from '../../../src/lib/virtual-clock.ts';
import type { Scene } from '../../../src/scene.ts';
import { settled } from '../../fuzz/virtual.ts';
import { Cable, clean, type Garble } from '../emulators/cable.ts';
import { shownQr } from '../emulators/hardware.ts';
import { testIo } from '../io.ts';
import { openDriver, scene } from '../opened.ts';
import { PAYMENT, payloadOf } from '../scenes.ts';

type Make = (send: (bytes: Uint8Array) => void) => PanelEmulator;

const QR_CHARS = 140;
const DRAWS_A_RUN = 36;

/** So many of a hundred bytes are others. */
function noise(percent: number, seed: number): Garble {
  const random = seededRandom(seed);
  return (bytes) =>
    bytes.map((byte) =>
      random.fraction() < percent / 100 ? (byte + 1 + Math.floor(random.fraction() * 255)) % 256 : byte,
    );
}

/** A panel at the end of a cable that garbles bytes; time passes on a clock of its own. */
function wired(name: string, make: Make, options: object, garble: { away: Garble; back: Garble }) {
  const clock = new VirtualClock();
  const cable = new Cable(make, garble);
  const io: DisplayIo = { ...testIo('/nowhere'), clock, openSerial: () => cable.open() };
  const opened = () => settled(clock, openDriver(name, io, options));
  const drawn = async (display: Display, what: Scene) => {
    const renderer = await openRenderer(display.surface, io);
    return settled(clock, display.draw(renderer.render(what), what));
  };
  const refreshed = async (display: Display, what: Scene) => {
    const renderer = await openRenderer(display.surface, io);
    return settled(clock, display.refresh?.run(renderer.render(what), what) ?? Promise.reject(new Error('no refresh')));
  };
  return { emulator: cable.panel, clock, opened, drawn, refreshed };
}

type Wired = ReturnType<typeof wired>;

async function open({ opened }: Wired): Promise<Display> {
  const result = await opened();
  if (result.status === 'rejected') throw result.reason;
  return result.value;
}

/** One payment and then none, over and over; how many payments were said to be shown, and which of them were not. */
async function drawThrough(panel: Wired): Promise<{ shown: number; wrong: string[] }> {
  const wrong: string[] = [];
  let shown = 0;
  let display: Display | undefined;
  for (let count = 0; count < DRAWS_A_RUN; count += 1) {
    if (display === undefined) {
      const result = await panel.opened();
      if (result.status === 'rejected') continue;
      display = result.value;
    }
    const wanted = count % 3 === 2 ? undefined : payloadOf(QR_CHARS + Math.floor(count / 3));
    const scenes = wanted === undefined ? scene('idle') : { ...PAYMENT, qrCode: wanted, secondsLeft: 300 - count };
    const { status } = await panel.drawn(display, scenes);
    if (status === 'fulfilled') {
      if (wanted !== undefined) shown += 1;
      const seen = shownQr(panel.emulator);
      if (seen !== wanted) wrong.push(`${seen}, not ${wanted}`);
      if (panel.emulator instanceof DwinEmulator && panel.emulator.page !== (wanted === undefined ? 0 : 1))
        wrong.push(`page ${panel.emulator.page}`);
    } else {
      await settled(panel.clock, display.close());
      display = undefined;
    }
  }
  return { shown, wrong };
}

const PANELS: readonly (readonly [string, string, Make, object])[] = [
  ['Nextion', 'nextion', (send) => new NextionEmulator(send), {}],
  ['DWIN', 'dwin', (send) => new DwinEmulator(send), { pages: { payment: 1 } }],
  [
    'DWIN with CRC',
    'dwin',
    (send) => new DwinEmulator(send, { ...PROJECT, crc: true }),
    { crc: true, pages: { payment: 1 } },
  ],
];

/** Only what is as long as a QR. */
function longOnly(garble: Garble): Garble {
  return (bytes) => (bytes.length < QR_CHARS ? bytes : garble(bytes));
}

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

describe.each(PANELS)('noise on the wire of a %s panel', (title, name, make, options) => {
  it.each([1, 2, 3])('lets no draw end well that does not show its QR, by seed %i', async (seed) => {
    const all = (percent: number) => ({ away: noise(percent, seed), back: noise(percent, seed + 100) });
    expect((await drawThrough(wired(name, make, options, all(1)))).wrong).toEqual([]);
    const long = { away: longOnly(noise(1, seed)), back: clean };
    for (const garble of [all(0.1), long]) {
      const { shown, wrong } = await drawThrough(wired(name, make, options, garble));
      expect(wrong).toEqual([]);
      // That something was shown at all.
      expect(shown).toBeGreaterThan(0);
    }
  });

  it('has a QR that came garbled written again', async () => {
    const away = firstLong(2, oneLetter);
    const panel = wired(name, make, options, { away: away.garble, back: clean });
    const display = await open(panel);
    expect(await panel.drawn(display, WITH_QR)).toMatchObject({ status: 'fulfilled' });
    expect(shownQr(panel.emulator)).toBe(WITH_QR.qrCode);
    expect(away.count()).toBe(3);
  });

  it('refuses by name when the QR never comes as it was sent', async () => {
    const words = title === 'DWIN with CRC' ? /did not acknowledge/ : /does not hold its QR/;
    const away = firstLong(Number.POSITIVE_INFINITY, oneLetter);
    const panel = wired(name, make, options, { away: away.garble, back: clean });
    const display = await open(panel);
    expect(await panel.drawn(display, WITH_QR)).toMatchObject({
      status: 'rejected',
      reason: { code: 'DISPLAY_FAULT', severity: 'retryable', message: expect.stringMatching(words) },
    });
    expect(away.count()).toBe(3);
  });

  it('is asked again when one question at rest is lost, and has failed when none is answered', async () => {
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

  it('has an amount that came garbled written again', async () => {
    const { panel, count } = otherAmounts(2);
    const display = await open(panel);
    expect(await panel.drawn(display, WITH_QR)).toMatchObject({ status: 'fulfilled' });
    expect(panel.emulator.shownTexts()[1]).toBe('50.000 ₫');
    expect(count()).toBe(3);
  });

  it('refuses by name when the amount never comes as it was sent', async () => {
    const { panel, count } = otherAmounts(Number.POSITIVE_INFINITY);
    const display = await open(panel);
    expect(await panel.drawn(display, WITH_QR)).toMatchObject({
      status: 'rejected',
      reason: { code: 'DISPLAY_FAULT', message: expect.stringContaining('does not hold its amount') },
    });
    expect(count()).toBe(3);
  });
});
