import type { Picture } from '../engine/pictures.ts';
import { codeOf, panelPicture } from './drawing.ts';
import { Emulator } from './emulator.ts';

/** The screens of a Bonrix DQR box, with the number of fields of each. */
const SCREENS: Readonly<Record<string, number>> = {
  WelcomeScreen: 1,
  DisplayQRCodeScreen: 3,
  DisplaySuccessQRCodeScreen: 3,
  DisplayFailQRCodeScreen: 3,
  DisplayCancelQRCodeScreen: 3,
};
const LINE_BYTES_MAX = 600;
const SIZE = { width: 320, height: 480 };

/** Emulates a Bonrix DQR box: ASCII lines, no answers. It is stricter than the device, see `violations`. */
export class DqrEmulator extends Emulator {
  screen = 'boot';
  fields: readonly string[] = [];
  #buffer = Buffer.alloc(0);

  restart(): void {
    this.screen = 'boot';
    this.fields = [];
    this.#buffer = Buffer.alloc(0);
  }

  shownTexts(): readonly string[] {
    return this.screen === 'DisplayQRCodeScreen' ? this.fields.slice(1) : this.fields;
  }

  code(): Picture | undefined {
    const [payload = ''] = this.fields;
    return this.screen === 'DisplayQRCodeScreen' ? codeOf(payload, SIZE.width) : undefined;
  }

  picture(): Picture {
    return panelPicture(SIZE, this.shownTexts(), this.code());
  }

  receive(bytes: Uint8Array): void {
    this.#buffer = Buffer.concat([this.#buffer, bytes]);
    for (let end = this.#buffer.indexOf(0x0a); end >= 0; end = this.#buffer.indexOf(0x0a)) {
      this.#holdLine(end);
      const line = this.#buffer.subarray(0, end).toString('latin1');
      this.#buffer = this.#buffer.subarray(end + 1);
      this.#show(line);
    }
    if (this.#holdLine(this.#buffer.length)) return;
    this.#buffer = Buffer.alloc(0);
  }

  #holdLine(bytes: number): boolean {
    if (bytes <= LINE_BYTES_MAX) return true;
    this.violation('a line longer than the buffer');
    return false;
  }

  #show(line: string): void {
    const [screen = '', ...fields] = line.split('**');
    const wanted = SCREENS[screen];
    if (!/^[ -~]*$/.test(line)) this.violation(`not printable ASCII: ${line}`);
    if (wanted === undefined) this.violation(`no such screen: ${line}`);
    if (wanted !== undefined && fields.length !== wanted) this.violation(`${fields.length} fields: ${line}`);
    if (fields.some((field) => field === '' || /^\*|\*$/.test(field))) this.violation(`a bad field: ${line}`);
    this.screen = screen;
    this.fields = fields;
  }
}
