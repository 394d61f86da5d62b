import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PANEL_NAMES, type PanelEmulator, type PanelName } from '../../src/bench/panels/emulator.ts';
import { EMULATORS } from '../../src/bench/panels/panel.ts';
import type { DisplayIo } from '../../src/device/display/contract.ts';
import { DISPLAY_DRIVERS } from '../../src/device/display/registry.ts';
import { openRenderer } from '../../src/device/display/render.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { createLogger } from '../../src/lib/log.ts';
import { Cable } from '../display/emulators/cable.ts';
import { type Make, shownQr } from '../display/emulators/hardware.ts';
import { PAYMENT, SCENES } from '../display/scenes.ts';
import { type Benchmark, type Row, rowUnder } from './row.ts';

/** The smallest possible number of bytes, and how many more a driver may send. */
interface Aim {
  floor: { name: string; value: number };
  beyondBytes: number;
}

/** These panels and printers draw the rest themselves. */
const PAYLOAD: Aim = {
  floor: { name: 'the payload alone', value: Buffer.byteLength(PAYMENT.qrCode) },
  beyondBytes: 200,
};
const AIMS: Readonly<Record<PanelName, Aim>> = {
  nextion: PAYLOAD,
  dwin: PAYLOAD,
  dqr: PAYLOAD,
  escpos: PAYLOAD,
  cd5220: { floor: { name: 'its page of characters', value: 2 * 20 }, beyondBytes: 10 },
  'matrix-orbital': { floor: { name: 'its page of characters', value: 4 * 20 }, beyondBytes: 20 },
  openlcd: { floor: { name: 'its page of characters', value: 4 * 20 }, beyondBytes: 20 },
  'usb-bitmap': { floor: { name: 'the whole picture', value: 320 * 480 * 2 }, beyondBytes: 0 },
};

/** Bytes that each serial driver sends from idle to payment, counted on a cable without delay. */
export const wire: Benchmark = {
  name: 'wire',
  run: async (progress) => {
    const rows: Row[] = [];
    for (const name of PANEL_NAMES) {
      progress(`wire: ${name}`);
      const { floor, beyondBytes } = AIMS[name];
      const bytes = await bytesFromIdleToPayment(name, EMULATORS[name]);
      // The goal includes its number of bytes, but a row's limit excludes it: hence + 1.
      rows.push(rowUnder(`wire ${name}, idle to payment`, 'bytes', bytes, floor, floor.value + beyondBytes + 1));
    }
    return rows;
  },
};

async function bytesFromIdleToPayment(name: string, make: Make<PanelEmulator>): Promise<number> {
  const cable = new Cable(make);
  const cacheDir = await mkdtemp(join(tmpdir(), 'paybox-wire-'));
  const io: DisplayIo = {
    clock: systemClock,
    log: createLogger(process.stderr, systemClock, 'text'),
    terminal: undefined,
    terminalInput: undefined,
    openSerial: () => cable.open(),
    cacheDir,
    requestDraw: () => {},
  };
  try {
    const driver = DISPLAY_DRIVERS.get(name);
    const { idle } = SCENES;
    if (driver === undefined || idle === undefined) throw new Error(`no driver ${name}`);
    const display = await driver.configure(driver.example).open(io, new AbortController().signal);
    const renderer = await openRenderer(display.surface, io);
    await display.draw(renderer.render(idle), idle);
    cable.written();
    await display.draw(renderer.render(PAYMENT), PAYMENT);
    const { length: bytes } = cable.written();
    const shown = display.surface.kind === 'characters' || shownQr(cable.panel) === PAYMENT.qrCode;
    await display.close();
    if (!shown) throw new Error(`${name} does not show the payment`);
    return bytes;
  } finally {
    await rm(cacheDir, { recursive: true, force: true });
  }
}
