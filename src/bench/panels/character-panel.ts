import type { Picture } from '../pictures.ts';
import { CharacterGrid } from './character-grid.ts';
import type { PanelEmulator } from './emulator.ts';

/** A panel of characters, of which a person sees what stands in its cells. */
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
