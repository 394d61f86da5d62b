import type { Picture } from '../pictures.ts';
import type { PanelEmulator } from './emulator.ts';

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
