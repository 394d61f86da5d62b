import type { Picture } from '../engine/pictures.ts';

/** An emulated device on a serial cable. It follows its manual and is stricter than the device. */
export interface PanelEmulator {
  /** The received data that a real device would drop, garble or misprint; empty when there was none. */
  readonly violations: readonly string[];
  /** True if the device can show a QR. */
  readonly drawsQr: boolean;
  /** True if the port supplies its power, so that power off also removes the port. */
  readonly isPoweredByPort: boolean;
  /** Receives bytes from the driver, in portions of any size. */
  receive(bytes: Uint8Array): void;
  /** Returns the texts on the screen. */
  shownTexts(): readonly string[];
  /** Returns the QR that the device draws itself, with its margin; undefined without one. */
  code(): Picture | undefined;
  /** Returns the screen as a person sees it. */
  picture(): Picture;
  /** Restores power. The screen is cleared, and the device sends its start-up message if it has one. */
  restart(): void;
}

const VIOLATIONS_MAX = 1_000;

/** Has the common parts of the emulated devices. Most of them draw a QR themselves and have their own power supply. */
export abstract class Emulator implements PanelEmulator {
  readonly drawsQr: boolean = true;
  readonly isPoweredByPort: boolean = false;
  readonly violations: string[] = [];

  abstract receive(bytes: Uint8Array): void;
  abstract shownTexts(): readonly string[];
  abstract code(): Picture | undefined;
  abstract picture(): Picture;
  abstract restart(): void;

  protected violation(what: string): void {
    if (this.violations.length < VIOLATIONS_MAX) this.violations.push(what);
  }
}

type MakeEmulator<E> = (send: (bytes: Uint8Array) => void) => E;

/** Adds a power switch to a panel. While off it is dark, ignores input and sends nothing, but its port stays. */
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

/** The serial displays that the bench emulates, by the names of their drivers. */
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
