import { CharacterPanel, hex } from './character-panel.ts';

const COLUMNS = 20;
const ESC = 0x1b;
const CLEAR = 0x0c;
const CR = 0x0d;

/**
 * Emulates a CD5220 pole display by its command list. It starts in string mode, as after another program, where only
 * ESC Q and CLR work. A line must have 20 characters, because displays differ in how they fill shorter ones.
 */
export class Cd5220Emulator extends CharacterPanel {
  brightness: number | undefined;
  #pending: number[] = [];
  #stringMode = true;

  constructor() {
    super(COLUMNS, 2);
  }

  restart(): void {
    this.brightness = undefined;
    this.#pending = [];
    this.#stringMode = false;
    this.fill(' ');
  }

  receive(bytes: Uint8Array): void {
    for (const byte of bytes) this.#take(byte);
  }

  #take(byte: number): void {
    const command = [...this.#pending, byte];
    this.#pending = this.#execute(command) ? [] : command;
  }

  /** Runs a command. Returns whether it is complete. */
  #execute(command: readonly number[]): boolean {
    const [first, second, third] = command;
    if (first === CLEAR) {
      this.#stringMode = false;
      this.fill(' ');
      return true;
    }
    if (first === CR) return true;
    if (first !== ESC) return this.#refuse(command);
    if (second === undefined) return false;
    if (second === 0x51) return third === undefined ? false : this.#line(third, command);
    if (this.#stringMode) return this.#refuse(command, 'in string mode');
    if (second === 0x40) {
      this.fill(' ');
      return true;
    }
    if (second !== 0x2a) return this.#refuse(command);
    if (third === undefined) return false;
    if (third < 1 || third > 4) return this.#refuse(command);
    this.brightness = third;
    return true;
  }

  #line(line: number, command: readonly number[]): boolean {
    const text = command.slice(3);
    if (line !== 0x41 && line !== 0x42) return this.#refuse(command);
    if (text.at(-1) !== CR) return text.length > COLUMNS ? this.#refuse(command, 'too long') : false;
    if (text.length !== COLUMNS + 1) return this.#refuse(command, 'not 20 characters');
    for (const [column, code] of text.slice(0, -1).entries()) {
      if (code < 0x20 || code > 0x7e) return this.#refuse(command, 'not printable');
      this.put(column, line - 0x41, String.fromCharCode(code));
    }
    this.#stringMode = true;
    return true;
  }

  #refuse(command: readonly number[], why = 'unknown'): true {
    this.violation(`${why}: ${hex(command)}`);
    return true;
  }
}
