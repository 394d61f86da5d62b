import { readDrawnQr } from './drawn-qr.ts';

/** The screens that a payment box shows, and how many fields each takes. */
const SCREENS: Readonly<Record<string, number>> = {
  WelcomeScreen: 1,
  DisplayQRCodeScreen: 3,
  DisplaySuccessQRCodeScreen: 3,
  DisplayFailQRCodeScreen: 3,
  DisplayCancelQRCodeScreen: 3,
};
const LINE_BYTES_MAX = 600;

/** A Bonrix DQR box: lines of ASCII, no answers. It is stricter than one: see `violations`. */
export class DqrEmulator {
  readonly violations: string[] = [];
  screen = 'boot';
  fields: readonly string[] = [];
  #buffer = Buffer.alloc(0);

  shownTexts(): readonly string[] {
    return this.screen === 'DisplayQRCodeScreen' ? this.fields.slice(1) : this.fields;
  }

  shownQr(): string | undefined {
    const [payload = ''] = this.fields;
    return this.screen === 'DisplayQRCodeScreen' ? readDrawnQr(payload) : undefined;
  }

  receive(bytes: Uint8Array): void {
    this.#buffer = Buffer.concat([this.#buffer, bytes]);
    for (let end = this.#buffer.indexOf(0x0a); end >= 0; end = this.#buffer.indexOf(0x0a)) {
      this.#holdLine(end);
      const line = this.#buffer.subarray(0, end).toString('latin1');
      this.#buffer = this.#buffer.subarray(end + 1);
      this.#show(line);
    }
    this.#holdLine(this.#buffer.length);
  }

  #holdLine(bytes: number): void {
    if (bytes > LINE_BYTES_MAX) this.violations.push('a line longer than the buffer');
  }

  #show(line: string): void {
    const [screen = '', ...fields] = line.split('**');
    const wanted = SCREENS[screen];
    if (!/^[ -~]*$/.test(line)) this.violations.push(`not printable ASCII: ${line}`);
    if (wanted === undefined) this.violations.push(`no such screen: ${line}`);
    if (wanted !== undefined && fields.length !== wanted) this.violations.push(`${fields.length} fields: ${line}`);
    if (fields.some((field) => field === '' || /^\*|\*$/.test(field))) this.violations.push(`a bad field: ${line}`);
    this.screen = screen;
    this.fields = fields;
  }
}
