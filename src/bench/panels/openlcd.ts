import { CharacterPanel, hex } from './character-panel.ts';

const SETTING = 0x7c;
const COMMAND = 0xfe;
/** The number of parameters of each known setting. */
const PARAMETERS: ReadonlyMap<number, number> = new Map([
  [0x18, 1],
  [0x2b, 3],
  [0x2d, 0],
  [0x2f, 0],
]);

/**
 * Emulates a SerLCD by its firmware's command set. Text before the first clear is invisible. A setting that changes
 * while setting messages are on would cover the screen with a message for seconds.
 */
export class OpenLcdEmulator extends CharacterPanel {
  contrast: number | undefined;
  backlight: number[] | undefined;
  #pending: number[] = [];
  #announces = true;
  /** The page content is unknown until it is cleared. */
  #cleared = false;
  /** The address in the HD44780 memory; undefined after the end of a line. */
  #address: number | undefined = 0;

  constructor(columns = 20, rows = 4) {
    super(columns, rows);
  }

  /** Restarts the display. Settings stay in memory. */
  restart(): void {
    this.#pending = [];
    this.#cleared = true;
    this.#address = 0;
    this.fill(' ');
  }

  receive(bytes: Uint8Array): void {
    for (const byte of bytes) {
      const command = [...this.#pending, byte];
      const [first] = command;
      if (first === SETTING) this.#setting(command);
      else if (first === COMMAND) this.#command(command);
      else this.#print(byte);
    }
  }

  #setting(command: number[]): void {
    const [, name, ...values] = command;
    const parameters = name === undefined ? 1 : PARAMETERS.get(name);
    this.#pending = [];
    if (parameters === undefined) this.violation(`unknown setting: ${hex(command)}`);
    else if (name === undefined || values.length < parameters) this.#pending = command;
    else if (name === 0x2f) this.#announces = false;
    else if (name === 0x2d) {
      this.fill(' ');
      this.#cleared = true;
      this.#address = 0;
    } else {
      if (this.#announces) this.violation(`announced on the screen: ${hex(command)}`);
      if (name === 0x18) this.contrast = values[0];
      else this.backlight = values;
    }
  }

  #command(command: number[]): void {
    const [, place] = command;
    this.#pending = place === undefined ? command : [];
    if (place === undefined) return;
    const address = place & 0x7f;
    if (place < 0x80 || this.#cellAt(address) === undefined) this.violation(`no such position: ${hex(command)}`);
    this.#address = address;
  }

  #print(byte: number): void {
    // Custom character 0, which a clear removes.
    if (byte === 0) this.#cleared = false;
    if (!this.#cleared) return;
    const char = String.fromCharCode(byte);
    if (byte < 0x20 || byte >= 0x7e || char === '\\') {
      this.violation(`not a character of its ROM: ${hex([byte])}`);
    }
    const cell = this.#address === undefined ? undefined : this.#cellAt(this.#address);
    if (cell === undefined) {
      this.violation(`${char} runs over the edge`);
      return;
    }
    this.put(cell.column, cell.row, char);
    this.#address = cell.column === this.columns - 1 ? undefined : (this.#address ?? 0) + 1;
  }

  /**
   * Returns the cell of an address. The HD44780's memory has two halves of 40 bytes, and a display of 4 lines shows two
   * of its lines from each half.
   */
  #cellAt(address: number): { column: number; row: number } | undefined {
    const { columns, rows } = this;
    const half = address >= 0x40 ? 1 : 0;
    const offset = address - half * 0x40;
    const row = half + 2 * Math.floor(offset / columns);
    return row < rows ? { column: offset % columns, row } : undefined;
  }
}
