/** Something that is not as expected, with both sides for a report. */
export interface Difference {
  /** One line with both sides. */
  reason: string;
  expected: string;
  actual: string;
}

/** A reason, with both sides if it has them. */
export type Problem = string | Difference;

/** Returns the reason in one line. */
export function reasonIn(problem: Problem): string {
  return typeof problem === 'string' ? problem : problem.reason;
}

/** Returns the same problem with words before its reason. */
export function prefixed(prefix: string, problem: Problem): Problem {
  return typeof problem === 'string' ? `${prefix}${problem}` : { ...problem, reason: `${prefix}${problem.reason}` };
}

/**
 * Returns why `actual` is not as expected, with its path; undefined when it is. It compares objects by the expected
 * keys only, and lists completely. A number equals a text that reads the same.
 */
export function difference(actual: unknown, expected: unknown, path = ''): Difference | undefined {
  if (typeof expected === 'object' && expected !== null) {
    if (typeof actual !== 'object' || actual === null) return differing(path, 'an object', shown(actual));
    if (Array.isArray(expected) && !(Array.isArray(actual) && actual.length === expected.length)) {
      return differing(path, shown(expected), shown(actual));
    }
    for (const [key, part] of Object.entries(expected)) {
      const value: unknown = Object.getOwnPropertyDescriptor(actual, key)?.value;
      const problem = difference(value, part, path === '' ? key : `${path}.${key}`);
      if (problem !== undefined) return problem;
    }
    return undefined;
  }
  return isSame(actual, expected) ? undefined : differing(path, shown(expected), shown(actual));
}

/** Returns whether two values are the same. A number equals a text that reads the same. */
export function isSame(left: unknown, right: unknown): boolean {
  return left === right || (isPlain(left) && isPlain(right) && String(left) === String(right));
}

function differing(what: string, expected: string, actual: string): Difference {
  const [left, right] = cutToDifference(expected, actual);
  return { reason: `${what}: expected ${left}, is ${right}`, expected: left, actual: right };
}

function isPlain(value: unknown): boolean {
  return ['string', 'number', 'boolean'].includes(typeof value);
}

const SIDE_CHARS_MAX = 60;
const COMMON_CHARS_SHOWN = 12;

/** Returns two texts, both cut around the first character that differs if one is long. */
export function cutToDifference(left: string, right: string): readonly [string, string] {
  if (Math.max(left.length, right.length) <= SIDE_CHARS_MAX) return [left, right];
  const from = Math.max(0, firstDifference(left, right) - COMMON_CHARS_SHOWN);
  const cut = (text: string) => {
    const end = from + SIDE_CHARS_MAX;
    return `${from === 0 ? '' : '…'}${text.slice(from, end)}${end < text.length ? '…' : ''}`.toWellFormed();
  };
  return [cut(left), cut(right)];
}

/** Returns the index of the first character that differs. */
export function firstDifference(left: string, right: string): number {
  const shorter = Math.min(left.length, right.length);
  for (let at = 0; at < shorter; at += 1) if (left[at] !== right[at]) return at;
  return shorter;
}

const SHOWN_CHARS_MAX = 300;

/** Returns a value in one line, for messages. */
export function shown(value: unknown): string {
  const text = value === undefined ? 'nothing' : JSON.stringify(value);
  return text.length > SHOWN_CHARS_MAX ? `${text.slice(0, SHOWN_CHARS_MAX)}…` : text;
}
