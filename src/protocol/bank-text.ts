import { unaccented } from '../lib/text.ts';

/* Texts of transfers, as banks change them (PROTOCOL.md, clause MAT). */

/** Shorter contents occur in too many texts, so they must be the whole text. */
const CONTAINED_CHARS_MIN = 3;

/** Letters and digits of a text, as banks leave them: capitals without accents. */
export function reduced(text: string): string {
  return plain(text).replaceAll(/[^A-Z0-9]/g, '');
}

function plain(text: string): string {
  return unaccented(text).toUpperCase();
}

/** Holds a text without its breaks, and where they were. */
export interface Spaced {
  reduced: string;
  /** Positions in `reduced` before which the text has a break. */
  breaks: ReadonlySet<number>;
  /** True if the bank left the blanks in place. Then a content does not begin or end inside a word. */
  hasBlanks: boolean;
}

export function spaced(text: string): Spaced {
  const words = plain(text)
    .trim()
    .split(/[^A-Z0-9]+/);
  const breaks = new Set<number>();
  let length = 0;
  for (const word of words) {
    breaks.add(length);
    length += word.length;
  }
  breaks.add(length);
  return { reduced: words.join(''), breaks, hasBlanks: /\s/.test(text.trim()) };
}

/** Returns whether a text contains a content completely, in the form of `reduced` (PROTOCOL.md, clause MAT-3). */
export function isContained(content: string, { reduced: text, breaks, hasBlanks }: Spaced): boolean {
  if (content.length < CONTAINED_CHARS_MIN) return content !== '' && content === text;
  for (let at = text.indexOf(content); at >= 0; at = text.indexOf(content, at + 1)) {
    if (isEdge(at) && isEdge(at + content.length)) return true;
  }
  return false;

  /** Returns whether a number may begin or end here. It never ends inside a longer one: DH12 does not contain DH1. */
  function isEdge(at: number): boolean {
    if (breaks.has(at)) return true;
    return !hasBlanks && !/\d\d/.test(text.slice(at - 1, at + 1));
  }
}
