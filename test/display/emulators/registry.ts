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

/** The device of each driver that needs one, by the driver's name. */
export const HARDWARE: ReadonlyMap<string, () => Promise<Hardware>> = new Map<string, () => Promise<Hardware>>([]);
