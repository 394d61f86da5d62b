import type { Picture } from '../pictures.ts';
import { cellsPicture } from './drawing.ts';
import type { PanelEmulator } from './emulator.ts';
import { addViolation } from './emulator.ts';

/** A panel of character cells. */
export abstract class CharacterPanel implements PanelEmulator {
  readonly drawsQr = false;
  readonly isPoweredByPort = false;
  protected readonly grid: CharacterGrid;

  constructor(columns: number, rows: number) {
    this.grid = new CharacterGrid(columns, rows);
  }

  abstract receive(bytes: Uint8Array): void;

  abstract restart(): void;

  get violations(): readonly string[] {
    return this.grid.violations;
  }

  shownTexts(): string[] {
    return this.grid.text();
  }

  code(): undefined {
    return undefined;
  }

  picture(): Picture {
    return this.grid.picture();
  }
}

/** The cells of an emulated character display and its violations. */
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

  /** Column and row count from 0. */
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

  /** The visible text, line by line. */
  text(): string[] {
    return this.#cells.map((row) => row.join('').trimEnd());
  }
}

export function hex(bytes: readonly number[]): string {
  return Buffer.from(bytes).toString('hex');
}
