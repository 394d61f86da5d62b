import { openPty, type Pty } from './pty.ts';

/** A device that a driver can be opened on in a test: an emulator at the far end of a real port. */
export interface Hardware {
  /** What the driver's example is changed in, so that it opens this device. */
  options: object;
  /** What the device was sent that it must never be; empty when all is well. */
  violations(): readonly string[];
  /** The payload of the QR on its screen, read from what it draws; undefined without one. */
  shownQr(): string | undefined;
  /** The words on its screen. */
  shownTexts(): readonly string[];
  /** Every byte since it was made or since the last call of `forget`. */
  received(): Uint8Array;
  forget(): void;
  unplug(): Promise<void>;
  plug(): Promise<void>;
  close(): Promise<void>;
}

/** What an emulator is to the cable. */
export interface SerialEmulator {
  readonly violations: readonly string[];
  receive(bytes: Uint8Array): void;
  shownQr(): string | undefined;
  shownTexts(): readonly string[];
}

/** An emulator at the end of a plugged cable, and the cable. */
export async function onPty<E extends SerialEmulator>(
  make: (send: (bytes: Uint8Array) => void) => E,
): Promise<Hardware & { emulator: E; pty: Pty }> {
  let chunks: Uint8Array[] = [];
  const emulator = make((bytes) => pty.send(bytes));
  const pty = await openPty((bytes) => {
    chunks.push(bytes);
    emulator.receive(bytes);
  });
  return {
    emulator,
    pty,
    options: { path: pty.path },
    violations: () => emulator.violations,
    shownQr: () => emulator.shownQr(),
    shownTexts: () => emulator.shownTexts(),
    received: () => Buffer.concat(chunks),
    forget: () => {
      chunks = [];
    },
    unplug: pty.unplug,
    plug: pty.plug,
    close: pty.close,
  };
}
