import type { FailureDetail } from './result.ts';
import { oneLine } from './text.ts';

/** A failed step in its file, with what was expected and what is below each other. The reason stands above it. */
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

/** A line of a file, with its indentation. */
function printed(text: string): string {
  return `${' '.repeat(text.search(/\S|$/))}${oneLine(text)}`;
}
