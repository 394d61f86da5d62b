import { describe, expect, it, onTestFinished } from 'vitest';
import { Cd5220Emulator } from '../../../src/bench/panels/cd5220.ts';
import { DwinEmulator } from '../../../src/bench/panels/dwin.ts';
import type { PanelEmulator } from '../../../src/bench/panels/emulator.ts';
import { MatrixOrbitalEmulator } from '../../../src/bench/panels/matrix-orbital.ts';
import { NextionEmulator } from '../../../src/bench/panels/nextion.ts';
import { OpenLcdEmulator } from '../../../src/bench/panels/openlcd.ts';
import { openPty } from '../../../src/bench/panels/pty.ts';
import { UsbBitmapEmulator } from '../../../src/bench/panels/usb-bitmap.ts';
import type { DisplayIo } from '../../../src/device/display/contract.ts';
import { openSerial } from '../../../src/device/display/io/serial.ts';
import type { PaymentScene } from '../../../src/device/scene.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { eventually } from '../../support/net.ts';
import { PROGRAMS, without } from '../../support/programs.ts';
import { type LineLimits, onPty } from '../emulators/hardware.ts';
import { wireOf } from '../emulators/wire.ts';
import { openOn, scene } from '../opened.ts';
import { glyphCache } from '../pictures.ts';
import { PAYMENT, payloadOf } from '../scenes.ts';

const { missing, note } = without(PROGRAMS.socat);
const source = glyphCache();
const never = new AbortController().signal;
const WRITE_TIMEOUT_MS = 20_000;
/** Matrix Orbital LK204-24-USB, manual, command FE 3A: an 80 byte display buffer. */
const MATRIX_ORBITAL_BUFFER_BYTES = 80;
const LONGEST: PaymentScene = { ...PAYMENT, qrCode: payloadOf(280), amount: 1_180_000 };

const plainSerial: DisplayIo['openSerial'] = (settings, signal) => openSerial(settings, signal, systemClock);

async function device<E extends PanelEmulator>(
  make: (send: (bytes: Uint8Array) => void) => E,
  limits: LineLimits & { baudRate: number },
) {
  const hardware = await onPty(make, limits);
  onTestFinished(() => hardware.pty.close());
  const open = (name: string, world: Partial<DisplayIo> = {}) =>
    openOn(name, { ...hardware.options, baudRate: limits.baudRate }, { openSerial: hardware.openSerial, ...world });
  return { hardware, open };
}

describe.skipIf(missing)(`a serial line at its baud rate${note}`, () => {
  it('a serial line brings ten bits a byte and no faster, in order', async () => {
    const [baudRate, bytes] = [9_600, Uint8Array.from({ length: 300 }, (_, index) => index)];
    const got: number[] = [];
    const early: string[] = [];
    let sentMs = 0;
    const pty = await openPty((part) => {
      got.push(...part);
      const dueMs = (got.length * 10_000) / baudRate;
      if (performance.now() - sentMs < dueMs) early.push(`${got.length} bytes`);
    }, wireOf(baudRate));
    onTestFinished(() => pty.close());
    const line = await openSerial({ path: pty.path, baudRate }, never, systemClock);
    onTestFinished(() => line.close());
    sentMs = performance.now();
    await line.write(bytes, WRITE_TIMEOUT_MS);
    await eventually('all are there', () => got.length === bytes.length);
    expect(got).toEqual([...bytes]);
    expect(early).toEqual([]);
  });

  it.each([
    ['nextion', 2_400, (send: (bytes: Uint8Array) => void) => new NextionEmulator(send)],
    ['nextion', 9_600, (send: (bytes: Uint8Array) => void) => new NextionEmulator(send)],
    ['dwin', 9_600, (send: (bytes: Uint8Array) => void) => new DwinEmulator(send)],
  ] as const)('%s at %i baud shows the longest payload before a draw has to be given up', async (name, rate, make) => {
    const { hardware, open } = await device<NextionEmulator | DwinEmulator>(make, { baudRate: rate });
    const { show } = await open(name);
    await show(scene('idle'));
    await show(LONGEST);
    expect(hardware.shownQr()).toBe(LONGEST.qrCode);
    expect(hardware.violations()).toEqual([]);
  });

  it.each([
    ['nextion', 2_400, (send: (bytes: Uint8Array) => void) => new NextionEmulator(send)],
    ['nextion', 9_600, (send: (bytes: Uint8Array) => void) => new NextionEmulator(send)],
    ['dwin', 9_600, (send: (bytes: Uint8Array) => void) => new DwinEmulator(send)],
  ] as const)('%s at %i baud does so behind an adapter that holds bytes back', async (name, rate, make) => {
    const { hardware, open } = await device<NextionEmulator | DwinEmulator>(make, { baudRate: rate });
    // The pty's own word that bytes have left comes before they are on the wire, as with a USB adapter.
    const { show } = await open(name, { openSerial: plainSerial });
    await show(scene('idle'));
    await show(LONGEST);
    expect(hardware.shownQr()).toBe(LONGEST.qrCode);
    expect(hardware.violations()).toEqual([]);
  });

  it('a serial line gives up a whole picture that the wire is too slow for, and says so', async () => {
    // Such panels speak USB, which is far faster than the rate by name; this one has a real UART.
    const { open } = await device(() => new UsbBitmapEmulator(), { baudRate: 115_200 });
    const { show } = await open('usb-bitmap', source);
    await expect(show(LONGEST)).rejects.toMatchObject({
      code: 'DISPLAY_FAULT',
      severity: 'retryable',
      message: expect.stringMatching(/did not take 307224 bytes/),
    });
  });

  it.each([
    ['cd5220', 9_600, () => new Cd5220Emulator()],
    ['matrix-orbital', 19_200, () => new MatrixOrbitalEmulator()],
    ['openlcd', 9_600, () => new OpenLcdEmulator()],
  ] as const)('%s at %i baud shows a payment', async (name, baudRate, make) => {
    const { hardware, open } = await device<PanelEmulator>(make, { baudRate });
    const { show } = await open(name);
    await show(scene('idle'));
    await show(LONGEST);
    expect(hardware.shownTexts().join(' ')).toContain('1.180.000');
    expect(hardware.violations()).toEqual([]);
  });
});

describe.skipIf(missing)(`a device that is busy${note}`, () => {
  it('a busy Nextion holds what its buffer has room for, one command of the longest payload', async () => {
    const { hardware, open } = await device((send) => new NextionEmulator(send), { baudRate: 115_200 });
    const { show } = await open('nextion');
    hardware.busy();
    const drawn = show(LONGEST);
    await eventually('a command has come', () => hardware.received().length > 0);
    hardware.ready();
    await drawn;
    expect(hardware.shownQr()).toBe(LONGEST.qrCode);
    expect(hardware.violations()).toEqual([]);
  });

  it('a busy Nextion reports that its buffer of 1,024 bytes overflowed', async () => {
    const { hardware } = await device((send) => new NextionEmulator(send), { baudRate: 115_200 });
    const line = await hardware.openSerial({ path: hardware.pty.path, baudRate: 115_200 }, never);
    onTestFinished(() => line.close());
    const said: number[] = [];
    line.onData((bytes) => said.push(...bytes));
    hardware.busy();
    await line.write(new Uint8Array(1_025).fill(0x20), WRITE_TIMEOUT_MS);
    expect(hardware.violations()).toEqual([]);
    hardware.ready();
    await eventually('it answers', () => said.length === 4);
    expect(said).toEqual([0x24, 0xff, 0xff, 0xff]);
    expect(hardware.violations()).toEqual(['more bytes than the buffer holds']);
  });

  it('a busy Matrix Orbital has room for a second of the countdown, and for what a payment changes', async () => {
    const limits = { baudRate: 19_200, bufferBytes: MATRIX_ORBITAL_BUFFER_BYTES };
    const { hardware, open } = await device(() => new MatrixOrbitalEmulator(), limits);
    const { show } = await open('matrix-orbital');
    await show(LONGEST);
    for (const page of [{ ...LONGEST, secondsLeft: LONGEST.secondsLeft - 1 }, scene('paid')]) {
      hardware.busy();
      await show(page);
      hardware.ready();
    }
    expect(hardware.violations()).toEqual([]);
  });

  it('a busy device loses what its buffer has no room for', async () => {
    const limits = { baudRate: 19_200, bufferBytes: MATRIX_ORBITAL_BUFFER_BYTES };
    const { hardware } = await device(() => new MatrixOrbitalEmulator(), limits);
    const line = await hardware.openSerial({ path: hardware.pty.path, baudRate: 19_200 }, never);
    onTestFinished(() => line.close());
    hardware.busy();
    await line.write(new Uint8Array(MATRIX_ORBITAL_BUFFER_BYTES).fill(0x20), WRITE_TIMEOUT_MS);
    expect(hardware.violations()).toEqual([]);
    await line.write(Uint8Array.of(0x20, 0x20), WRITE_TIMEOUT_MS);
    expect(hardware.violations().join()).toMatch(/^[12] bytes lost, its buffer is full/);
  });

  it('a device does not understand another rate than its own', async () => {
    const { hardware } = await device((send) => new NextionEmulator(send), { baudRate: 9_600 });
    const line = await hardware.openSerial({ path: hardware.pty.path, baudRate: 115_200 }, never);
    await line.close();
    expect(hardware.violations()).toEqual(['opened at 115200 baud, not 9600']);
  });
});
