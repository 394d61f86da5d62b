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

/** What a driver may send beyond the payload from idle to payment: smart panels draw the rest themselves. */
const BEYOND_PAYLOAD_BYTES: Readonly<Record<string, number>> = { nextion: 200, dwin: 200, dqr: 200 };
const ARRIVES_WITHIN_MS = 10_000;
const LOOK_EVERY_MS = 5;

/** Bytes on the wire of each serial driver from idle to payment, counted at the far end of a pty. */
export const wire: Benchmark = {
  name: 'wire',
  run: async (progress) => {
    if (findProgram(PROGRAMS.socat) === undefined) {
      progress(`wire: skipped, ${PROGRAMS.socat.command} is not installed`);
      return [];
    }
    const rows: Row[] = [];
    for (const [name, beyond] of Object.entries(BEYOND_PAYLOAD_BYTES)) {
      progress(`wire: ${name}`);
      const bytes = await bytesFromIdleToPayment(name);
      const floor = { name: 'the payload alone', value: Buffer.byteLength(PAYMENT.qrCode) };
      // The aim is at most so many bytes, and a row's limit is the first that is too many.
      rows.push(rowUnder(`wire ${name}, idle to payment`, 'bytes', bytes, floor, floor.value + beyond + 1));
    }
    return rows;
  },
};

async function bytesFromIdleToPayment(name: string): Promise<number> {
  const driver = DISPLAY_DRIVERS.get(name);
  const device = await HARDWARE.get(name)?.();
  const { idle } = SCENES;
  if (driver === undefined || device === undefined || idle === undefined) throw new Error(`no device for ${name}`);
  try {
    const options = { ...(driver.example as object), ...device.options };
    const display = await driver.configure(options).open(io, new AbortController().signal);
    const renderer = await openRenderer(display.surface, io);
    await display.draw(renderer.render(idle), idle);
    await until(`${name} is idle`, () => device.received().length > 0);
    device.forget();
    await display.draw(renderer.render(PAYMENT), PAYMENT);
    await until(`${name} shows the payment`, () => device.shownQr() === PAYMENT.qrCode);
    await display.close();
    return device.received().length;
  } finally {
    await device.close();
  }
}

const io: DisplayIo = {
  clock: systemClock,
  log: createLogger(process.stderr, systemClock, 'text'),
  terminal: undefined,
  terminalInput: undefined,
  openSerial: (settings, signal) => openSerial(settings, signal, systemClock),
  cacheDir: '/nowhere',
  onResize: () => {},
};

async function until(what: string, probe: () => boolean): Promise<void> {
  const deadline = performance.now() + ARRIVES_WITHIN_MS;
  while (!probe()) {
    if (performance.now() > deadline) throw new Error(`not within ${ARRIVES_WITHIN_MS} ms: ${what}`);
    await systemClock.sleep(LOOK_EVERY_MS);
  }
}
