import { setTimeout as delay } from 'node:timers/promises';
import jsqrModule from 'jsqr';
import type { PanelEmulator } from '../../../src/bench/panels/emulator.ts';
import { openPty, type Pty } from '../../../src/bench/panels/pty.ts';
import type { DisplayIo, SerialLine } from '../../../src/device/display/contract.ts';
import { displayFault } from '../../../src/device/display/fault.ts';
import { openSerial } from '../../../src/device/display/io/serial.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { wireOf } from './wire.ts';

// The module is CommonJS: its function is the default of its default.
const jsqr = jsqrModule.default;

/** What a phone reads from the code that the device draws; undefined when it reads none. */
export function shownQr(emulator: PanelEmulator): string | undefined {
  const code = emulator.code();
  return code && jsqr(new Uint8ClampedArray(code.data), code.width, code.height)?.data;
}

/** How the cable and the device's end of it behave; without it bytes arrive at once, and are read at once. */
export interface LineLimits {
  /** The device's, which the driver's must be too. */
  baudRate?: number;
  /** What the device holds while it is busy, where its emulator has no buffer of its own. */
  bufferBytes?: number;
}

/** A device that a driver can be opened on in a test: an emulator at the far end of a real port. */
export interface Hardware<E extends PanelEmulator = PanelEmulator> {
  emulator: E;
  pty: Pty;
  /** What the driver's example is changed in, so that it opens this device. */
  options: { path: string };
  /** What the device was sent that it must never be; empty when all is well. */
  violations(): readonly string[];
  /** The payload of the QR on its screen, read from what it draws; undefined without one. */
  shownQr(): string | undefined;
  /** The words on its screen. */
  shownTexts(): readonly string[];
  /** Every byte since it was made or since the last call of `forget`. */
  received(): Uint8Array;
  forget(): void;
  /** For the driver's world: a port whose writes settle when the bytes have passed the wire; a pty's settle before. */
  openSerial: DisplayIo['openSerial'];
  /** The device reads nothing until `ready`: what arrives waits in its buffer, and what that does not hold is lost. */
  busy(): void;
  ready(): void;
}

export type Make<E> = (send: (bytes: Uint8Array) => void) => E;

/** An emulator at the end of a plugged cable, and the cable. */
export async function onPty<E extends PanelEmulator>(
  make: Make<E>,
  { baudRate, bufferBytes = Number.POSITIVE_INFINITY }: LineLimits = {},
): Promise<Hardware<E>> {
  let chunks: Uint8Array[] = [];
  let arrived = 0;
  let held: Uint8Array | undefined;
  const violations: string[] = [];
  const emulator = make((bytes) => pty.send(bytes));
  const pty = await openPty(
    (bytes) => {
      chunks.push(bytes);
      arrived += bytes.length;
      if (held === undefined) {
        emulator.receive(bytes);
        return;
      }
      const all = Buffer.concat([held, bytes]);
      held = all.subarray(0, bufferBytes);
      if (held.length < all.length) violations.push(`${all.length - held.length} bytes lost, its buffer is full`);
    },
    baudRate === undefined ? undefined : wireOf(baudRate),
  );
  return {
    emulator,
    pty,
    openSerial: async (settings, signal) => {
      if (settings.baudRate !== baudRate) violations.push(`opened at ${settings.baudRate} baud, not ${baudRate}`);
      return overWire(await openSerial(settings, signal, systemClock), settings.path, () => arrived);
    },
    busy: () => {
      held ??= new Uint8Array();
    },
    ready: () => {
      const bytes = held;
      held = undefined;
      if (bytes !== undefined && bytes.length > 0) emulator.receive(bytes);
    },
    options: { path: pty.path },
    violations: () => [...violations, ...emulator.violations],
    shownQr: () => shownQr(emulator),
    shownTexts: () => emulator.shownTexts(),
    received: () => Buffer.concat(chunks),
    forget: () => {
      chunks = [];
    },
  };
}

/** The line, whose writes settle once the device's end has counted their bytes. */
function overWire(line: SerialLine, path: string, arrived: () => number): SerialLine {
  let expected = arrived();
  return {
    lost: line.lost,
    onData: (listener) => line.onData(listener),
    close: () => line.close(),
    write: async (bytes, timeoutMs) => {
      const untilMs = performance.now() + timeoutMs;
      expected += bytes.length;
      const target = expected;
      await line.write(bytes, timeoutMs);
      while (arrived() < target) {
        if (performance.now() > untilMs) throw displayFault(`${path} did not take ${bytes.length} bytes`, 'wait');
        await delay(1);
      }
    },
  };
}
