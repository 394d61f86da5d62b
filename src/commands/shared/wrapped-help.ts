/** The gap between a command of an example and what it does. */
const GAP = / {2,}(?=\S)/;
const WORDS_INDENT = 6;

/** A run of lines without an indent, which are one paragraph, or a single line. */
const PARAGRAPHS = /^\S.*(?:\n\S.*)*|^.*$/gm;

/**
 * Returns the text after the options of a command's help, wrapped at this many columns. A paragraph with a line that is
 * too wide is wrapped again as a whole. The explanation of a wide example goes below its command. A command stays on one
 * line, so that it can be copied.
 */
export function wrappedHelp(text: string, columns: number): string {
  return text.replaceAll(PARAGRAPHS, (part) =>
    part.split('\n').every((line) => line.length <= columns)
      ? part
      : narrow(part.replaceAll('\n', ' '), columns).join('\n'),
  );
}

function narrow(line: string, columns: number): string[] {
  const indent = line.length - line.trimStart().length;
  const inner = line.slice(indent);
  const { index, 0: gap = '' } = GAP.exec(inner) ?? {};
  if (index !== undefined) {
    const words = inner.slice(index + gap.length);
    return [...narrow(line.slice(0, indent + index), columns), ...wordsIn(words, columns, WORDS_INDENT)];
  }
  return inner.startsWith('$ ') ? [line] : wordsIn(inner, columns, indent);
}

function wordsIn(text: string, columns: number, indent: number): string[] {
  const margin = ' '.repeat(indent);
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= columns) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(`${margin}${word}`);
  }
  return lines;
}
