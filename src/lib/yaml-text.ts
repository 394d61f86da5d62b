import {
  type Document,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  type ParsedNode,
  parseDocument,
  visit,
  type YAMLParseError,
} from 'yaml';
import { ConfigError, reasonOf } from './errors.ts';

/** Limits the parser's work, because it searches all earlier anchors for each alias. */
const ALIASES_MAX = 1_000;

/** Holds a parsed YAML text with positions. */
export interface YamlText {
  value: unknown;
  /** Returns the line, from 1, of the value at a path, or of its nearest parent. */
  lineOf(path: readonly PropertyKey[]): number;
  /** Returns line and column, from 1, of the same value: `3:5`. */
  placeOf(path: readonly PropertyKey[]): string;
  /** Returns the character range of the value at a path; undefined if there is none. */
  rangeOf(path: readonly PropertyKey[]): readonly [from: number, to: number] | undefined;
}

/**
 * Parses YAML. Throws ConfigError with line and column. The parser rejects unknown and multiplying aliases and deep
 * nesting. This function also rejects an alias inside its own anchor, which would be endless.
 */
export function parseYaml(text: string, name: string): YamlText {
  const lines = new LineCounter();
  try {
    // The parser would compare each key of a map with all others, which takes a minute for a large map.
    const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: false });
    const [error] = document.errors;
    const problem = error === undefined ? problemIn(document) : problemBy(error);
    if (problem === undefined) {
      const { contents } = document;
      const value: unknown = document.toJS();
      const lineOf: YamlText['lineOf'] = (path) => lines.linePos(placeOf(contents, path).start).line;
      const loop = loopIn(value);
      if (loop !== undefined) throw new ConfigError(`${name}:${lineOf(loop)}: ${loop.join('.')}: contains itself`);
      return {
        value,
        lineOf,
        placeOf: (path) => {
          const { line, col } = lines.linePos(placeOf(contents, path).start);
          return `${line}:${col}`;
        },
        rangeOf: (path) => placeOf(contents, path).range,
      };
    }
    const { line, col } = lines.linePos(problem.at);
    throw new ConfigError(`${name}:${line}:${col}: not valid YAML: ${problem.words}`, problem.fix);
  } catch (error) {
    throw error instanceof ConfigError ? error : new ConfigError(`${name}: not valid YAML: ${wordsOf(error)}`, FIX);
  }
}

/** Matches an account without quotes, which YAML reads as a number. */
const LEADING_ZERO = /^[-+]?0\d/;

/** Matches the quotes that word processors write for straight ones. To YAML they are part of the text. */
const CURLY_QUOTES = /^[“”„‟‘’‚‛«»]/u;

/**
 * Finds a problem that the parser accepts: curly quotes, duplicate keys of a map, numbers with a zero in front, too
 * many aliases.
 */
function problemIn(document: Document.Parsed): Problem | undefined {
  let problem: Problem | undefined;
  let aliases = 0;
  visit(document, {
    Map: (_key, { items }) => {
      const seen = new Set<string>();
      for (const { key } of items) {
        if (!isScalar(key)) continue;
        const word = String(key.value ?? '');
        if (seen.has(word)) {
          problem = { at: key.range?.[0] ?? 0, words: 'a key is there twice', fix: 'remove one of the two' };
          return visit.BREAK;
        }
        seen.add(word);
      }
      return undefined;
    },
    Scalar: (key, { type, value, source = '', range }) => {
      if (type !== 'PLAIN') return undefined;
      const at = range?.[0] ?? 0;
      if (typeof value === 'string' && CURLY_QUOTES.test(value)) {
        const words = 'a text stands in the curly quotes of a word processor';
        problem = { at, words, fix: 'write it with the quotes " of a keyboard, or without' };
        return visit.BREAK;
      }
      if (key === 'key' || typeof value !== 'number' || !LEADING_ZERO.test(source)) return undefined;
      const words = 'a number that begins with 0 would lose it';
      problem = { at, words, fix: 'put it in quotes, as accounts, telephone numbers and passwords' };
      return visit.BREAK;
    },
    Alias: (_key, { range }) => {
      aliases += 1;
      if (aliases <= ALIASES_MAX) return undefined;
      problem = { at: range?.[0] ?? 0, words: `has more than ${ALIASES_MAX} aliases`, fix: 'write the values out' };
      return visit.BREAK;
    },
  });
  return problem;
}

/** Returns the path to a value that contains itself. */
function loopIn(
  value: unknown,
  path: readonly string[] = [],
  around: ReadonlySet<unknown> = new Set(),
): readonly string[] | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  if (around.has(value)) return path;
  const inner = new Set(around).add(value);
  for (const [key, it] of Object.entries(value)) {
    const loop = loopIn(it, [...path, key], inner);
    if (loop !== undefined) return loop;
  }
  return undefined;
}

function placeOf(contents: ParsedNode | null, path: readonly PropertyKey[]) {
  let node: unknown = contents;
  let start = contents?.range[0] ?? 0;
  for (const key of path) {
    const pair = isMap(node) ? node.items.find((it) => isScalar(it.key) && it.key.value === key) : undefined;
    const next = pair === undefined && isSeq(node) ? node.items[Number(key)] : pair?.value;
    const named = pair?.key ?? next;
    if (!isNode(named)) return { start, range: undefined };
    start = named.range?.[0] ?? start;
    node = next;
  }
  const range = isNode(node) && node.range ? ([node.range[0], node.range[1]] as const) : undefined;
  return { start, range };
}

interface Problem {
  at: number;
  words: string;
  /** The remedy, for the file's author. */
  fix: string;
}

const FIX = 'write each line as `key: value`, indent with spaces, and put a text with signs in it in quotes';
const BRACKETS = 'close the { or [ that is open, or put a text that contains one in quotes';
const [IN_QUOTES, ONE_COLUMN] = [
  'put the text in quotes: a value may not begin with this sign, nor have ": " in it',
  'begin all keys of one map in the same column, and indent with spaces',
];

/** Gives remedies for the parser's errors by their code, with words of our own where the parser uses its own terms. */
const ADVICE: Readonly<Record<string, { fix: string; words?: string }>> = {
  MULTILINE_IMPLICIT_KEY: {
    words: 'a line is no `key: value`',
    fix: 'write a colon and a space after each key; a text of several lines stands in quotes',
  },
  BLOCK_AS_IMPLICIT_KEY: { words: 'a value has a second `key: value` in it', fix: IN_QUOTES },
  TAB_AS_INDENT: { words: 'a line begins with a tab', fix: 'indent with spaces' },
  BAD_INDENT: { words: 'a line begins in another column than its neighbours', fix: ONE_COLUMN },
  BAD_SCALAR_START: { fix: IN_QUOTES },
  BAD_DQ_ESCAPE: { words: 'no such sign after a backslash', fix: 'write \\\\ for a backslash, or \' in place of "' },
  BAD_ALIAS: { fix: 'put a text that begins with * or & in quotes' },
  TAG_RESOLVE_FAILED: { fix: 'put a text that begins with ! in quotes' },
  MISSING_CHAR: { fix: 'close the quote or bracket that is open, and leave a space after a colon' },
  MULTIPLE_DOCS: { words: 'a second document begins with ---, expected one', fix: 'leave out the lines with ---' },
};

/** Describes the parser's error in words for the file's author. */
function problemBy(error: YAMLParseError): Problem {
  const said = wordsOf(error);
  const isBracket = /flow-(map|seq)-start|end with a [\]}]/.test(said);
  const { words = said, fix = FIX } = isBracket ? { fix: BRACKETS } : (ADVICE[error.code] ?? {});
  return { at: error.pos[0], words, fix };
}

function wordsOf(error: unknown): string {
  const reason = reasonOf(error);
  return /call stack/i.test(reason) ? 'it is nested too deeply' : reason;
}
