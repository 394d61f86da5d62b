import type { Picture } from '../pictures.ts';

/** A device at the far end of a serial cable, by its manual and stricter than one. */
export interface PanelEmulator {
  /** What it was sent that a device would drop, garble or misprint; empty when all is well. */
  readonly violations: readonly string[];
  /** Whether it can show a QR at all. */
  readonly drawsQr: boolean;
  /** Whether its power comes through its port, which then goes with it. */
  readonly isPoweredByPort: boolean;
  /** Bytes as they arrive, in any portions. */
  receive(bytes: Uint8Array): void;
  /** The words on its screen. */
  shownTexts(): readonly string[];
  /** The code that it draws, with its margin, for those that draw one by themselves; undefined without one. */
  code(): Picture | undefined;
  /** What a person sees on it. */
  picture(): Picture;
  /** Power has come again: what was on its screen is gone, and a device that says something then says it. */
  restart(): void;
}

const VIOLATIONS_MAX = 1_000;

/** Holds something against the sender, unless so much is held already. */
export function addViolation(violations: string[], what: string): void {
  if (violations.length < VIOLATIONS_MAX) violations.push(what);
}

type MakeEmulator<E> = (send: (bytes: Uint8Array) => void) => E;

/** A device with a switch for its power. Without it the device is dark, hears nothing and says nothing; its port stays. */
export class SwitchablePanel<E extends PanelEmulator> implements PanelEmulator {
  readonly emulator: E;
  #isOn = true;

  constructor(make: MakeEmulator<E>, send: (bytes: Uint8Array) => void) {
    this.emulator = make((bytes) => {
      if (this.#isOn) send(bytes);
    });
  }

  get drawsQr(): boolean {
    return this.emulator.drawsQr;
  }

  get isPoweredByPort(): boolean {
    return this.emulator.isPoweredByPort;
  }

  get violations(): readonly string[] {
    return this.emulator.violations;
  }

  cutPower(): void {
    this.#isOn = false;
  }

  restart(): void {
    this.#isOn = true;
    this.emulator.restart();
  }

  receive(bytes: Uint8Array): void {
    if (this.#isOn) this.emulator.receive(bytes);
  }

  shownTexts(): readonly string[] {
    return this.#isOn ? this.emulator.shownTexts() : [];
  }

  code(): Picture | undefined {
    return this.#isOn ? this.emulator.code() : undefined;
  }

  picture(): Picture {
    const picture = this.emulator.picture();
    return this.#isOn ? picture : dark(picture);
  }
}

function dark({ width, height }: Picture): Picture {
  const data = new Uint8Array(width * height * 4);
  for (let alpha = 3; alpha < data.length; alpha += 4) data[alpha] = 255;
  return { width, height, data };
}

/** The displays on a serial port that the bench emulates, by the names of their drivers. */
export const PANEL_NAMES = [
  'nextion',
  'dwin',
  'dqr',
  'usb-bitmap',
  'escpos',
  'cd5220',
  'matrix-orbital',
  'openlcd',
] as const;

export type PanelName = (typeof PANEL_NAMES)[number];

export function isPanelName(name: string): name is PanelName {
  return PANEL_NAMES.some((it) => it === name);
}
