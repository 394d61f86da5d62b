import type { CharacterSurface, Display, DisplayIo, Frame, SerialSettings } from '../contract.ts';
import { displayFault } from '../fault.ts';
import { SerialScreen } from './serial-screen.ts';

/** ASCII that the usual character ROM (A00) of HD44780 displays draws as something else: `\` as the sign of the yen, `~` as an arrow. */
export const HD44780_INSTEAD: Readonly<Record<string, string>> = { '\\': '/', '~': '.' };

/** Writing a page over itself is not seen, and takes a tenth of a second on the slowest of these wires at most. */
const REPEAT_EVERY_MS = 10_000;

/** How a make of character display is told what to show. Pages are rows of exactly `columns` printable ASCII characters. */
export interface CharacterDialect {
  columns: number;
  rows: number;
  /** Characters that this device draws as something else, and what is shown instead of them. */
  instead: Readonly<Record<string, string>>;
  /** Makes the device ready and its page blank, whatever it did before. */
  setup: Uint8Array;
  /** The part of `setup` that a device forgets without power. It may be sent amid a page, which is written again after it. */
  again: Uint8Array;
  /** The bytes that turn the page `before` into `after`; whole rows where nothing is known of them. */
  update(before: readonly string[], after: readonly string[]): Uint8Array;
}

/**
 * Opens a character display; only what changed since the last page is sent. It answers nothing: the whole page is written
 * again now and then, which brings it back to a display that was without power, and one that stays without looks well.
 * Throws as `DisplayIo.openSerial` does.
 */
export async function openCharacters(
  settings: SerialSettings,
  dialect: CharacterDialect,
  io: DisplayIo,
  signal: AbortSignal,
): Promise<Display> {
  const { columns, rows } = dialect;
  const surface: CharacterSurface = { kind: 'characters', columns, rows, halfBlocks: false };
  const screen = await SerialScreen.open(settings, io, signal);
  let page = Array.from({ length: rows }, () => ' '.repeat(columns));
  await screen.send(dialect.setup).catch(async (error: unknown) => {
    await screen.close();
    throw error;
  });
  return {
    surface,
    draw: async (frame) => {
      screen.expectOpen();
      const wanted = pageOf(frame, dialect);
      await screen.send(dialect.update(page, wanted));
      page = wanted;
    },
    refresh: {
      everyMs: REPEAT_EVERY_MS,
      run: () => screen.send(Buffer.concat([dialect.again, dialect.update([], page)])),
    },
    close: () => screen.close(),
  };
}

/** The rows of a frame in the characters of the device; what it does not have becomes `?`. */
function pageOf(frame: Frame, { columns, rows, instead }: CharacterDialect): string[] {
  if (frame.kind !== 'characters' || frame.columns !== columns || frame.rows > rows) {
    throw displayFault(`a frame was laid out for another screen than this one of ${columns} x ${rows} characters`, '');
  }
  return Array.from({ length: rows }, (_, row) =>
    Array.from({ length: columns }, (_, column) => {
      const char = row < frame.rows ? (frame.cells[row * columns + column]?.char ?? ' ') : ' ';
      const shown = instead[char] ?? char;
      return /^[ -~]$/.test(shown) ? shown : '?';
    }).join(''),
  );
}

/** Characters to write one after another from a place on the page, counted from 0. */
export interface Run {
  row: number;
  column: number;
  text: string;
}

/** The differences between two pages, row by row. Runs with up to `gapMax` equal characters between them are written as one. */
export function changedRuns(before: readonly string[], after: readonly string[], gapMax: number): Run[] {
  return after.flatMap((text, row) => {
    const old = before[row] ?? '';
    const runs: Run[] = [];
    for (let column = 0; column < text.length; column += 1) {
      if (text[column] === old[column]) continue;
      const last = runs.at(-1);
      if (last !== undefined && column - (last.column + last.text.length) <= gapMax) {
        last.text = text.slice(last.column, column + 1);
      } else {
        runs.push({ row, column, text: text.charAt(column) });
      }
    }
    return runs;
  });
}
