/**
 * Invisible or misleading characters: controls, direction marks, zero-width characters, fillers, tags, surrogates, and
 * code points that Unicode has not assigned.
 */
const UNSEEN = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/u;
const EACH_UNSEEN = new RegExp(UNSEEN, 'gu');

/** Whether all characters of a text are visible and appear in their order. */
export function isPlainText(text: string): boolean {
  return !UNSEEN.test(text);
}

/** The text with each invisible character in JSON notation, `\u202e`. */
export function withoutUnseen(text: string): string {
  return text.replaceAll(EACH_UNSEEN, (found) =>
    Array.from({ length: found.length }, (_, at) => escaped(found, at)).join(''),
  );
}

function escaped(text: string, at: number): string {
  return `\\u${text.charCodeAt(at).toString(16).padStart(4, '0')}`;
}

/** The text without the accents of its letters; đ becomes d. */
export function unaccented(text: string): string {
  return text.normalize('NFD').replaceAll(/\p{M}/gu, '').replaceAll('đ', 'd').replaceAll('Đ', 'D');
}

/** Rows as aligned columns. */
export function table(rows: readonly (readonly string[])[]): string {
  const columns = Math.max(0, ...rows.map((row) => row.length));
  const widths = Array.from({ length: columns }, (_, column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)),
  );
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
