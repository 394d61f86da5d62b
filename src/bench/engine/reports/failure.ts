import type { FailureDetail } from './result.ts';
import { oneLine } from './text.ts';

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
