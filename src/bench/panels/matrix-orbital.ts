import { CharacterPanel, hex } from './character-panel.ts';

const COMMAND = 0xfe;
/** Parameters of each command that is known here. */
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
 * A Matrix Orbital display by its manual. What is written before a clearing is not seen, but after it every
 * character must have its place, and none may run over the edge or scroll the page.
 */
export class MatrixOrbitalEmulator extends CharacterPanel {
  contrast = 128;
  brightness = 255;
  lit = false;
  /** Whether it keeps what it is told to be without power, which wears its memory. */
  remembers = true;
  #pending: number[] = [];
  #autoScroll = true;
  /** Until it is cleared, nobody knows what stands on the page. */
  #cleared = false;
  #cursor: { column: number; row: number } | undefined;

  constructor(columns = 20, rows = 4) {
    super(columns, rows);
  }

  /** Its start-up screen in every cell, where nobody has cleared it yet, and its settings as it left the factory. */
  restart(): void {
    this.contrast = 128;
    this.brightness = 255;
    this.lit = true;
    this.#pending = [];
    this.#autoScroll = true;
    this.grid.fill('#');
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
    if (parameters === undefined) this.grid.refuse(`unknown: ${hex(command)}`);
    else if (name === undefined || command.length < 2 + parameters) this.#pending = command;
    else this.#execute(name, first, second);
  }

  #execute(name: number, first: number, second: number): void {
    if (name === 0x93) this.remembers = first !== 0;
    else if ([0x42, 0x50, 0x52, 0x99].includes(name) && this.remembers) this.grid.refuse('a setting to be remembered');
    if (name === 0x42) this.lit = first === 0;
    if (name === 0x50) this.contrast = first;
    if (name === 0x99) this.brightness = first;
    if (name === 0x52) this.#autoScroll = false;
    if (name === 0x48) this.#cursor = { column: 0, row: 0 };
    if (name === 0x58) {
      this.grid.clear();
      this.#cleared = true;
      this.#cursor = { column: 0, row: 0 };
    }
    if (name === 0x47) {
      const { columns, rows } = this.grid;
      if (first < 1 || first > columns || second < 1 || second > rows) this.grid.refuse(`no cell ${first}, ${second}`);
      this.#cursor = { column: first - 1, row: second - 1 };
    }
  }

  #print(byte: number): void {
    // Its own character 0, which clearing takes away.
    if (byte === 0) this.#cleared = false;
    if (!this.#cleared) return;
    const { columns, rows } = this.grid;
    const char = String.fromCharCode(byte);
    if (byte < 0x20 || byte >= 0x7e || char === '\\') this.grid.refuse(`not a character of its ROM: ${hex([byte])}`);
    if (this.#cursor === undefined) {
      this.grid.refuse(`${char} runs over the edge`);
      return;
    }
    const { column, row } = this.#cursor;
    this.grid.put(column, row, char);
    if (this.#autoScroll && column === columns - 1 && row === rows - 1) this.grid.refuse('the page scrolls');
    // Where the next character goes after the edge differs between models.
    this.#cursor = column === columns - 1 ? undefined : { column: column + 1, row };
  }
}
