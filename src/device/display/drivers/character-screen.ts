import type { CharacterSurface, Display, DisplayIo, Frame, SerialSettings } from '../contract.ts';
import { displayFault } from '../fault.ts';
import { SerialScreen } from './serial-screen.ts';

/**
 * ASCII characters that the usual ROM (A00) of HD44780 displays draws as others: `\` as the yen sign, `~` as an arrow.
 */
export const HD44780_INSTEAD: Readonly<Record<string, string>> = { '\\': '/', '~': '.' };

/**
 * The driver writes the page again after this time. People cannot see it, and it needs at most a tenth of a second on
 * the slowest line.
 */
const REPEAT_EVERY_MS = 10_000;

/** Commands of a make of character display. Pages are rows of exactly `columns` printable ASCII characters. */
export interface CharacterDialect {
  columns: number;
  rows: number;
  /** Replacements for characters that this device draws as others. */
  instead: Readonly<Record<string, string>>;
  /** Prepares the device, in any state, and blanks its page. */
  setup: Uint8Array;
  /**
   * The part of `setup` that a device forgets without power. It may be sent in the middle of a page, which is then
   * written again.
   */
  again: Uint8Array;
  /** Returns bytes that change the page `before` into `after`; whole rows if `before` is not known. */
  update(before: readonly string[], after: readonly string[]): Uint8Array;
}

/**
 * Opens a character display. It sends only changes. The device answers nothing, so the driver sends the whole page at
 * intervals. This restores a display that was without power, but nobody notices a display that stays off. Throws as
 * `DisplayIo.openSerial` does.
 */
export async function openCharacters(
  settings: SerialSettings,
  dialect: CharacterDialect,
  io: DisplayIo,
  signal: AbortSignal,
): Promise<Display> {
  const { columns, rows } = dialect;
  const surface: CharacterSurface = { kind: 'characters', columns, rows, halfBlocks: false };
  const screen = await SerialScreen.open(settings, dialect.setup, io, signal);
  let page = Array.from({ length: rows }, () => ' '.repeat(columns));
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

/** Returns the rows of a frame in the device's characters. Missing ones become `?`. */
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

/** Adjacent characters to write, from a place on the page; row and column count from 0. */
export interface Run {
  row: number;
  column: number;
  text: string;
}

/**
 * Returns the differences between two pages, row by row. It joins two runs with at most `gapMax` equal characters
 * between them.
 */
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
