import { CharacterPanel, hex } from './character-panel.ts';

const COMMAND = 0xfe;
/** The number of parameters of each known command. */
const PARAMETERS: ReadonlyMap<number, number> = new Map([
  [0x42, 1],
  [0x47, 2],
  [0x48, 0],
  [0x50, 1],
  [0x52, 0],
  [0x58, 0],
  [0x93, 1],
  [0x99, 1],
]);

/**
 * Emulates a Matrix Orbital display by its manual. Text before the first clear is invisible. After it, every character needs a
 * position and must not run over the edge or scroll the page.
 */
export class MatrixOrbitalEmulator extends CharacterPanel {
  contrast = 128;
  brightness = 255;
  lit = false;
  /** True if it saves settings to its memory, which wears that memory. */
  remembers = true;
  #pending: number[] = [];
  #autoScroll = true;
  /** The page content is unknown until it is cleared. */
  #cleared = false;
  #cursor: { column: number; row: number } | undefined;

  constructor(columns = 20, rows = 4) {
    super(columns, rows);
  }

  /** Shows the start-up screen in every cell until it is cleared; settings return to factory values. */
  restart(): void {
    this.contrast = 128;
    this.brightness = 255;
    this.lit = true;
    this.#pending = [];
    this.#autoScroll = true;
    this.fill('#');
    this.#cleared = true;
    this.#cursor = { column: 0, row: 0 };
  }

  receive(bytes: Uint8Array): void {
    for (const byte of bytes) {
      if (this.#pending.length === 0 && byte !== COMMAND) this.#print(byte);
      else this.#take([...this.#pending, byte]);
    }
  }

  #take(command: number[]): void {
    const [, name, first = 0, second = 0] = command;
    const parameters = name === undefined ? 1 : PARAMETERS.get(name);
    this.#pending = [];
    if (parameters === undefined) this.violation(`unknown: ${hex(command)}`);
    else if (name === undefined || command.length < 2 + parameters) this.#pending = command;
    else this.#execute(name, first, second);
  }

  #execute(name: number, first: number, second: number): void {
    if (name === 0x93) this.remembers = first !== 0;
    else if ([0x42, 0x50, 0x52, 0x99].includes(name) && this.remembers) this.violation('a setting saved to memory');
    if (name === 0x42) this.lit = first === 0;
    if (name === 0x50) this.contrast = first;
    if (name === 0x99) this.brightness = first;
    if (name === 0x52) this.#autoScroll = false;
    if (name === 0x48) this.#cursor = { column: 0, row: 0 };
    if (name === 0x58) {
      this.fill(' ');
      this.#cleared = true;
      this.#cursor = { column: 0, row: 0 };
    }
    if (name === 0x47) {
      const { columns, rows } = this;
      if (first < 1 || first > columns || second < 1 || second > rows) this.violation(`no cell ${first}, ${second}`);
      this.#cursor = { column: first - 1, row: second - 1 };
    }
  }

  #print(byte: number): void {
    // Custom character 0, which a clear removes.
    if (byte === 0) this.#cleared = false;
    if (!this.#cleared) return;
    const { columns, rows } = this;
    const char = String.fromCharCode(byte);
    if (byte < 0x20 || byte >= 0x7e || char === '\\') this.violation(`not a character of its ROM: ${hex([byte])}`);
    if (this.#cursor === undefined) {
      this.violation(`${char} runs over the edge`);
      return;
    }
    const { column, row } = this.#cursor;
    this.put(column, row, char);
    if (this.#autoScroll && column === columns - 1 && row === rows - 1) this.violation('the page scrolls');
    // Models differ in where the cursor goes after the edge.
    this.#cursor = column === columns - 1 ? undefined : { column: column + 1, row };
  }
}
