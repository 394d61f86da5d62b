import { expect } from 'vitest';
import { DwinEmulator, PROJECT } from '../../../src/bench/panels/dwin.ts';
import type { PanelEmulator } from '../../../src/bench/panels/emulator.ts';
import { NextionEmulator } from '../../../src/bench/panels/nextion.ts';
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

export const QR_CHARS = 140;
const DRAWS_A_RUN = 36;
const PAYMENTS_A_RUN = 24;

/** So many of a hundred bytes are others. */
export function noise(percent: number, seed: number): Garble {
  const random = seededRandom(seed);
  return (bytes) =>
    bytes.map((byte) =>
      random.fraction() < percent / 100 ? (byte + 1 + Math.floor(random.fraction() * 255)) % 256 : byte,
    );
}

/** A panel at the end of a cable that garbles bytes; time passes on a clock of its own. */
export function wired(name: string, make: Make, options: object, garble: { away: Garble; back: Garble }) {
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

export type Wired = ReturnType<typeof wired>;

export async function open({ opened }: Wired): Promise<Display> {
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

export const PANELS: readonly (readonly [string, string, Make, object])[] = [
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
export function longOnly(garble: Garble): Garble {
  return (bytes) => (bytes.length < QR_CHARS ? bytes : garble(bytes));
}

/** Draws payments over a wire that is noisy by this seed: no draw may end well that does not show its QR. */
export async function expectShownQrs(
  [title, name, make, options]: (typeof PANELS)[number],
  seed: number,
): Promise<void> {
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
}
