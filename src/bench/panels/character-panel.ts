import type { Picture } from '../engine/pictures.ts';
import { cellsPicture } from './drawing.ts';
import { Emulator } from './emulator.ts';

/** Emulates a panel of character cells. */
export abstract class CharacterPanel extends Emulator {
  override readonly drawsQr = false;
  readonly columns: number;
  readonly rows: number;
  #cells: string[][] = [];

  constructor(columns: number, rows: number) {
    super();
    this.columns = columns;
    this.rows = rows;
    this.fill(' ');
  }

  code(): undefined {
    return undefined;
  }

  picture(): Picture {
    return cellsPicture(
      this.#cells.map((row) => row.join('')),
      this.columns,
    );
  }

  /** Returns the visible text, line by line. */
  shownTexts(): string[] {
    return this.#cells.map((row) => row.join('').trimEnd());
  }

  protected fill(char: string): void {
    this.#cells = Array.from({ length: this.rows }, () => Array.from({ length: this.columns }, () => char));
  }

  /** Writes a character into a cell. Column and row count from 0. */
  protected put(column: number, row: number, char: string): void {
    const cells = this.#cells[row];
    if (cells === undefined || column < 0 || column >= this.columns) this.violation(`no cell ${column}, ${row}`);
    else cells[column] = char;
  }
}

export function hex(bytes: readonly number[]): string {
  return Buffer.from(bytes).toString('hex');
}
