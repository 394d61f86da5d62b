import { isUtf8 } from 'node:buffer';

/**
 * Matches invisible or misleading characters: controls, direction marks, zero-width characters, fillers, tags,
 * surrogates, and code points that Unicode has not assigned.
 */
const UNSEEN = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/u;
const EACH_UNSEEN = new RegExp(UNSEEN, 'gu');

/** Returns whether all characters of a text are visible and appear in their order. */
export function isPlainText(text: string): boolean {
  return !UNSEEN.test(text);
}

/** Returns the text with each invisible character in JSON notation, `\u202e`. */
export function withoutUnseen(text: string): string {
  return text.replaceAll(EACH_UNSEEN, escaped);
}

/** Undoes `withoutUnseen`. Any other text stays unchanged. */
export function withUnseen(text: string): string {
  const read = text.replaceAll(/\\u([0-9a-f]{4})/g, (_all, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
  return withoutUnseen(read) === text ? read : text;
}

function escaped(text: string): string {
  return text.replaceAll(/[\s\S]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Matches NUL, which PostgreSQL refuses, and half characters, which both stores would change. */
const UNSTORABLE = /[\0\p{Cs}]/u;
const EACH_UNSTORABLE = new RegExp(UNSTORABLE, 'gu');

/** Returns whether every store can hold a text and return it unchanged. */
export function isStorable(text: string): boolean {
  return !UNSTORABLE.test(text);
}

/**
 * Returns the text with each character that no store can hold in JSON notation, so that different texts stay different.
 */
export function storable(text: string): string {
  return text.replaceAll(EACH_UNSTORABLE, escaped);
}

/** Returns how many bytes at the beginning are UTF-8. */
export function validBytesIn(bytes: Uint8Array): number {
  let valid = 0;
  let beyond = bytes.length + 1;
  // A prefix may end inside a character, so it counts if it is UTF-8 without its last three bytes.
  const isValid = (length: number) =>
    [0, 1, 2, 3].some((cut) => cut <= length && isUtf8(bytes.subarray(0, length - cut)));
  while (beyond - valid > 1) {
    const middle = (valid + beyond) >> 1;
    if (isValid(middle)) valid = middle;
    else beyond = middle;
  }
  while (valid > 0 && !isUtf8(bytes.subarray(0, valid))) valid -= 1;
  return valid;
}

/** Returns the encoding that a byte order mark names, unless it is UTF-8. */
export function utf16ByMark(bytes: Uint8Array): 'utf-16le' | 'utf-16be' | undefined {
  const [first, second] = bytes;
  if (first === 0xff && second === 0xfe) return 'utf-16le';
  return first === 0xfe && second === 0xff ? 'utf-16be' : undefined;
}

/** Returns the text without the accents of its letters; đ becomes d. */
export function unaccented(text: string): string {
  return text.normalize('NFD').replaceAll(/\p{M}/gu, '').replaceAll('đ', 'd').replaceAll('Đ', 'D');
}

/**
 * Returns the beginning of a text, at most `charsMax` long. Unlike a slice, it does not hold the rest of the text in
 * memory.
 */
export function beginningOf(text: string, charsMax: number): string {
  return Buffer.from(text.slice(0, charsMax)).toString();
}

/** Formats rows as aligned columns for people. Each row is one line, and invisible characters are in JSON notation. */
export function table(given: readonly (readonly string[])[]): string {
  const rows = given.map((cells) => cells.map(withoutUnseen));
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
