import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DisplayIo } from '../../src/display/contract.ts';
import { openSerial } from '../../src/display/io/serial.ts';
import { DISPLAY_DRIVERS } from '../../src/display/registry.ts';
import { openRenderer } from '../../src/display/render.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { createLogger } from '../../src/lib/log.ts';
import { HARDWARE } from '../display/emulators/registry.ts';
import { PAYMENT, SCENES } from '../display/scenes.ts';
import { findProgram, PROGRAMS } from '../support/programs.ts';
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
const AIMS: Readonly<Record<string, Aim>> = {
  nextion: PAYLOAD,
  dwin: PAYLOAD,
  dqr: PAYLOAD,
  escpos: PAYLOAD,
  cd5220: { floor: { name: 'its page of characters', value: 2 * 20 }, beyondBytes: 10 },
  'matrix-orbital': { floor: { name: 'its page of characters', value: 4 * 20 }, beyondBytes: 20 },
  openlcd: { floor: { name: 'its page of characters', value: 4 * 20 }, beyondBytes: 20 },
  'usb-bitmap': { floor: { name: 'the whole picture', value: 320 * 480 * 2 }, beyondBytes: 0 },
};
const ARRIVES_WITHIN_MS = 10_000;
const LOOK_EVERY_MS = 5;

/** Bytes that each serial driver sends from idle to payment, counted at the far end of a pty. */
export const wire: Benchmark = {
  name: 'wire',
  run: async (progress) => {
    if (findProgram(PROGRAMS.socat) === undefined) {
      progress(`wire: skipped, ${PROGRAMS.socat.command} is not installed`);
      return [];
    }
    const rows: Row[] = [];
    for (const [name, { floor, beyondBytes }] of Object.entries(AIMS)) {
      progress(`wire: ${name}`);
      const bytes = await bytesFromIdleToPayment(name);
      // The goal includes its number of bytes, but a row's limit excludes it: hence + 1.
      rows.push(rowUnder(`wire ${name}, idle to payment`, 'bytes', bytes, floor, floor.value + beyondBytes + 1));
    }
    return rows;
  },
};

async function bytesFromIdleToPayment(name: string): Promise<number> {
  const driver = DISPLAY_DRIVERS.get(name);
  const device = await HARDWARE.get(name)?.();
  const { idle } = SCENES;
  if (driver === undefined || device === undefined || idle === undefined) throw new Error(`no device for ${name}`);
  const cacheDir = await mkdtemp(join(tmpdir(), 'paybox-wire-'));
  let sent = 0;
  const io: DisplayIo = {
    clock: systemClock,
    log: createLogger(process.stderr, systemClock, 'text'),
    terminal: undefined,
    terminalInput: undefined,
    openSerial: async (settings, signal) => {
      const line = await openSerial(settings, signal, systemClock);
      return {
        lost: line.lost,
        onData: (listener) => line.onData(listener),
        close: () => line.close(),
        write: (bytes, timeoutMs) => {
          sent += bytes.length;
          return line.write(bytes, timeoutMs);
        },
      };
    },
    cacheDir,
    requestDraw: () => {},
  };
  try {
    const options = { ...(driver.example as object), ...device.options };
    const display = await driver.configure(options).open(io, new AbortController().signal);
    const renderer = await openRenderer(display.surface, io);
    await display.draw(renderer.render(idle), idle);
    await until(`${name} is idle`, () => device.received().length === sent);
    device.forget();
    sent = 0;
    await display.draw(renderer.render(PAYMENT), PAYMENT);
    await until(`${name} has the payment`, () => device.received().length === sent);
    const bytes = sent;
    const shown = display.surface.kind === 'characters' || device.shownQr() === PAYMENT.qrCode;
    await display.close();
    if (!shown) throw new Error(`${name} does not show the payment`);
    return bytes;
  } finally {
    await device.close();
    await rm(cacheDir, { recursive: true, force: true });
  }
}

async function until(what: string, probe: () => boolean): Promise<void> {
  const deadline = performance.now() + ARRIVES_WITHIN_MS;
  while (!probe()) {
    if (performance.now() > deadline) throw new Error(`not within ${ARRIVES_WITHIN_MS} ms: ${what}`);
    await systemClock.sleep(LOOK_EVERY_MS);
  }
}
