import { describe, expect, it } from 'vitest';
import { DwinEmulator, PROJECT } from '../../../src/bench/panels/dwin.ts';
import type { PanelEmulator } from '../../../src/bench/panels/emulator.ts';
import { type HmiPage, NextionEmulator } from '../../../src/bench/panels/nextion.ts';
import type { Display, DisplayIo } from '../../../src/device/display/contract.ts';
import { openRenderer } from '../../../src/device/display/render.ts';
import type { Scene } from '../../../src/device/scene.ts';
import type { Logger } from '../../../src/lib/log.ts';
import { seededRandom } from '../../../src/lib/random.ts';
import { VirtualClock } from '../../../src/lib/virtual-clock.ts';
import { settled } from '../../fuzz/virtual.ts';
import { Cable, clean, type Garble } from '../emulators/cable.ts';
import { shownQr } from '../emulators/hardware.ts';
import { testIo } from '../io.ts';
import { openDriver, scene } from '../opened.ts';
import { PAYMENT, payloadOf } from '../scenes.ts';

type Make = (send: (bytes: Uint8Array) => void) => PanelEmulator;

const QR_CHARS = 140;
const DRAWS_A_RUN = 36;
const PAYMENTS_A_RUN = 24;

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
  const events: string[] = [];
  const told = (event: string) => void events.push(event);
  const log: Logger = { info: told, warn: told, error: told, with: () => log };
  const io: DisplayIo = { ...testIo('/nowhere'), log, clock, openSerial: () => cable.open() };
  const opened = () => settled(clock, openDriver(name, io, options));
  const drawn = async (display: Display, what: Scene) => {
    const renderer = await openRenderer(display.surface, io);
    return settled(clock, display.draw(renderer.render(what), what));
  };
  const refreshed = async (display: Display, what: Scene) => {
    const renderer = await openRenderer(display.surface, io);
    return settled(clock, display.refresh?.run(renderer.render(what), what) ?? Promise.reject(new Error('no refresh')));
  };
  return { emulator: cable.panel, clock, opened, drawn, refreshed, events };
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
  it.each([1, 2, 3])('a noisy %s wire ends no draw well that does not show its QR, by seed %i', async (seed) => {
    const all = (percent: number) => ({ away: noise(percent, seed), back: noise(percent, seed + 100) });
    const long = { away: longOnly(noise(1, seed)), back: clean };
    // A panel with CRC drops each garbled write, so that a long QR takes more tries than a draw has time for.
    for (const [garble, share] of [
      [all(1), title === 'Nextion' ? 0.9 : 0.25],
      [all(0.1), 0.9],
      [long, 0.5],
    ] as const) {
      const { shown, wrong } = await drawThrough(wired(name, make, options, garble));
      expect(wrong).toEqual([]);
      expect(shown).toBeGreaterThanOrEqual(share * PAYMENTS_A_RUN);
    }
  });

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
    expect(panel.events).toContain('panel-line-noisy');
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
    const lines = panel.events.filter((event) => event === 'panel-line-noisy');
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
