import type { FailureDetail } from './result.ts';

/**
 * These characters are refused by XML 1.0 or a terminal, or change the reading direction: control characters except tab
 * and line ends, lone surrogates, and bidi marks.
 */
const UNPRINTABLE = /[^\t\n\r\u0020-\u007e\u00a0-\u2029\u202f-\u2065\u206a-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu;

/**
 * Makes text from outside safe for a report. It removes characters that could break the report's format or the
 * terminal.
 */
export function printable(text: string): string {
  return text.toWellFormed().replaceAll(UNPRINTABLE, '\ufffd');
}

/** Makes text from outside safe as `printable` does, in one line. */
export function oneLine(text: string): string {
  return printable(text).replaceAll(/\s+/g, ' ').trim();
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Escapes text for content and quoted attributes of XML and HTML. */
export function escaped(text: string): string {
  return printable(text).replaceAll(/[&<>"']/g, (character) => ENTITIES[character] ?? '');
}

/** Returns milliseconds for people: `12 ms`, `1.2 s`, `5 min 3 s`. */
export function tookText(ms: number): string {
  const [whole, tenths, seconds] = [Math.round(ms), Math.round(ms / 100), Math.round(ms / 1_000)];
  if (whole < 1_000) return `${whole} ms`;
  if (tenths < 600) return `${(tenths / 10).toFixed(1)} s`;
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

/**
 * Returns the lines that show a failed step in its file, with the expected and the actual value below each other. The
 * caller prints the reason above them.
 */
export function failureLines({ lines, expected, actual, notes }: FailureDetail): string[] {
  const width = String(lines.at(-1)?.line ?? 0).length;
  const source = lines.map(({ line, text, isOfStep }) =>
    `${isOfStep ? '>' : ' '} ${String(line).padStart(width)} | ${printed(text)}`.trimEnd(),
  );
  const sides =
    expected === undefined && actual === undefined
      ? []
      : [`  expected  ${oneLine(expected ?? '')}`, `  actual    ${oneLine(actual ?? '')}`];
  return [...source, ...sides, ...notes.map((note) => `  ${oneLine(note)}`)];
}

/** Returns a line of a file, with its indentation. */
function printed(text: string): string {
  return `${' '.repeat(text.search(/\S|$/))}${oneLine(text)}`;
}
