const ELLIPSIS = '…';

export interface Wrapped {
  lines: string[];
  /** True if a part of the text is missing. */
  cut: boolean;
}

/**
 * Wraps `text` into lines no wider than `width` by `measure`, between words if possible. It cuts the text after
 * `linesMax` lines, with an ellipsis. Returns no line if not even one character fits.
 */
export function wrap(text: string, width: number, linesMax: number, measure: (text: string) => number): Wrapped {
  const lines: string[] = [];
  let rest = text.trim();
  while (rest !== '') {
    if (measure(rest) <= width) return { lines: [...lines, rest], cut: false };
    if (lines.length === linesMax - 1) {
      const start = fitting(rest, width - measure(ELLIPSIS), measure).trimEnd();
      return { lines: start === '' ? lines : [...lines, `${start}${ELLIPSIS}`], cut: true };
    }
    const taken = fitting(rest, width, measure);
    if (taken === '') return { lines: [], cut: true };
    const space = rest.charAt(taken.length) === ' ' ? taken.length : taken.lastIndexOf(' ');
    const line = space > 0 ? rest.slice(0, space) : taken;
    lines.push(line.trimEnd());
    rest = rest.slice(line.length).trimStart();
  }
  return { lines, cut: false };
}

/** Returns the longest beginning of `text` that is not wider than `width`. */
function fitting(text: string, width: number, measure: (text: string) => number): string {
  let low = 0;
  let high = text.length;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (measure(text.slice(0, middle)) <= width) low = middle;
    else high = middle - 1;
  }
  return text.slice(0, low);
}
