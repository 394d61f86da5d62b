/** Longer words are rarely mistyped, and comparing them takes long. */
const WORD_CHARS_MAX = 64;

/** Suggests the intended word, as `; did you mean unique?`; empty if none is near. */
export function suggestion(word: string, known: Iterable<string>): string {
  if (word.length > WORD_CHARS_MAX) return '';
  const limit = Math.max(1, Math.floor(word.length / 3));
  const given = word.toLowerCase();
  const near = [...known]
    .map((it) => ({
      it,
      distance: Math.min(
        distanceOf(given, it.toLowerCase()),
        isBeginningOf(it, given) ? limit : Number.POSITIVE_INFINITY,
      ),
    }))
    .filter(({ distance }) => distance <= limit && distance < word.length)
    .sort((a, b) => a.distance - b.distance);
  return near[0] === undefined ? '' : `; did you mean ${near[0].it}?`;
}

/** A person who knows only the beginning of a long name writes at least this much of it. */
const BEGINNING_CHARS_MIN = 3;
const isBeginningOf = (known: string, given: string) =>
  given.length >= BEGINNING_CHARS_MIN && known.toLowerCase().startsWith(given);

/** Counts the characters to insert, delete, replace or swap with their neighbour until the words are equal. */
function distanceOf(left: string, right: string): number {
  let before: number[] = [];
  let above = Array.from({ length: right.length + 1 }, (_, at) => at);
  for (let i = 1; i <= left.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= right.length; j += 1) {
      const cost = left[i - 1] === right[j - 1] ? 0 : 1;
      const least = Math.min((above[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (above[j - 1] ?? 0) + cost);
      const isSwap = left[i - 1] === right[j - 2] && left[i - 2] === right[j - 1];
      row.push(isSwap ? Math.min(least, (before[j - 2] ?? least) + 1) : least);
    }
    [before, above] = [above, row];
  }
  return above[right.length] ?? left.length;
}
