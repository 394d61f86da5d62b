import type { Picture } from '../pictures.ts';
import { cellsPicture } from './drawing.ts';
import { addViolation } from './emulator.ts';

/** The cells of an emulated character display, and what went wrong on it. */
export class CharacterGrid {
  readonly columns: number;
  readonly rows: number;
  readonly violations: string[] = [];
  #cells: string[][] = [];

  constructor(columns: number, rows: number) {
    this.columns = columns;
    this.rows = rows;
    this.clear();
  }

  clear(): void {
    this.fill(' ');
  }

  fill(char: string): void {
    this.#cells = Array.from({ length: this.rows }, () => Array.from({ length: this.columns }, () => char));
  }

  /** Places counted from 0. */
  put(column: number, row: number, char: string): void {
    const cells = this.#cells[row];
    if (cells === undefined || column < 0 || column >= this.columns) this.refuse(`no cell ${column}, ${row}`);
    else cells[column] = char;
  }

  refuse(what: string): void {
    addViolation(this.violations, what);
  }

  picture(): Picture {
    return cellsPicture(
      this.#cells.map((row) => row.join('')),
      this.columns,
    );
  }

  /** What one reads, line by line. */
  text(): string[] {
    return this.#cells.map((row) => row.join('').trimEnd());
  }
}

export function hex(bytes: readonly number[]): string {
  return Buffer.from(bytes).toString('hex');
}
