import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { basename, dirname, resolve } from 'node:path';
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
import type { z } from 'zod';
import { ConfigError, reasonOf } from './errors.ts';

/** Name of the one file that a person puts on a box's boot partition. */
export const BOX_FILE = 'paybox.yaml';

const PROBLEMS_SHOWN_MAX = 8;
const KEYS_SHOWN_MAX = 8;
/** Limit for the file of one device or run; the parser is slow on large files. */
const CONFIG_CHARS_MAX = 65_536;
/** Limits the parser's work: for each alias it searches all earlier anchors. */
const ALIASES_MAX = 1_000;

/** A parsed YAML file, not yet validated. */
export interface ConfigFile {
  /** The file's name in messages. */
  name: string;
  /** The file's folder; relative paths start here. */
  folder: string;
  value: unknown;
}

/** Reads a YAML file of at most `charsMax` characters. Throws ConfigError, for a syntax error with line and column. */
export async function readConfigFile(path: string, charsMax = CONFIG_CHARS_MAX): Promise<ConfigFile> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    throw new ConfigError(`${path}: cannot be read: ${reasonOf(error)}`, 'name an existing file with --config');
  });
  const name = basename(path);
  if (text.length > charsMax) {
    throw new ConfigError(`${name}: has ${text.length} characters, expected at most ${charsMax}`);
  }
  return { name, folder: dirname(path), value: parseYaml(text, name).value };
}

/** The secret in the file that an option of a configuration names. Throws ConfigError, which never has the secret. */
export function readSecretFile(
  { option, file }: { option: string; file: string },
  { name, folder }: Pick<ConfigFile, 'name' | 'folder'>,
  schema: z.ZodType<string>,
): string {
  const path = resolve(folder, file);
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new ConfigError(`${name}: ${option}: cannot be read: ${reasonOf(error)}`, `put the secret into ${path}`);
  }
  const parsed = schema.safeParse(text.trim());
  if (parsed.success) return parsed.data;
  throw new ConfigError(`${name}: ${option}: ${parsed.error.issues[0]?.message} in ${path}`);
}

/** A parsed YAML text with positions. */
export interface YamlText {
  value: unknown;
  /** The line, from 1, of the value at a path, or of its nearest parent. */
  lineOf(path: readonly PropertyKey[]): number;
  /** The character range of the value at a path; undefined if there is none. */
  rangeOf(path: readonly PropertyKey[]): readonly [from: number, to: number] | undefined;
}

/**
 * Throws ConfigError with line and column. The parser rejects unknown and multiplying aliases and deep nesting; this
 * function also rejects an alias inside its own anchor, which would be endless.
 */
export function parseYaml(text: string, name: string): YamlText {
  const lines = new LineCounter();
  try {
    // The parser compares each key of a map with all others, which takes a minute for a large map.
    const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: false });
    const [error] = document.errors;
    const problem = error === undefined ? problemIn(document) : { at: error.pos[0], words: hintOf(error) };
    if (problem === undefined) {
      const { contents } = document;
      const value: unknown = document.toJS();
      const lineOf: YamlText['lineOf'] = (path) => lines.linePos(placeOf(contents, path).start).line;
      const loop = loopIn(value);
      if (loop !== undefined) throw new ConfigError(`${name}:${lineOf(loop)}: ${loop.join('.')}: contains itself`);
      return {
        value,
        lineOf,
        rangeOf: (path) => placeOf(contents, path).range,
      };
    }
    const { line, col } = lines.linePos(problem.at);
    throw new ConfigError(`${name}:${line}:${col}: not valid YAML: ${problem.words}`);
  } catch (error) {
    throw error instanceof ConfigError ? error : new ConfigError(`${name}: not valid YAML: ${wordsOf(error)}`);
  }
}

/** The position of a problem that the parser accepts: duplicate keys of a map, too many aliases. */
function problemIn(document: Document.Parsed): { at: number; words: string } | undefined {
  let problem: { at: number; words: string } | undefined;
  let aliases = 0;
  visit(document, {
    Map: (_key, { items }) => {
      const seen = new Set<string>();
      for (const { key } of items) {
        if (!isScalar(key)) continue;
        const word = String(key.value ?? '');
        if (seen.has(word)) {
          problem = { at: key.range?.[0] ?? 0, words: 'Map keys must be unique' };
          return visit.BREAK;
        }
        seen.add(word);
      }
      return undefined;
    },
    Alias: (_key, { range }) => {
      aliases += 1;
      if (aliases <= ALIASES_MAX) return undefined;
      problem = { at: range?.[0] ?? 0, words: `has more than ${ALIASES_MAX} aliases` };
      return visit.BREAK;
    },
  });
  return problem;
}

/** The path to a value that contains itself. */
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

/** The parser's error in words for the file's author. */
function hintOf(error: YAMLParseError): string {
  if (error.code === 'MULTIPLE_DOCS') return 'a second document begins with ---, expected one';
  const words = wordsOf(error);
  return /flow-(map|seq)-start/.test(words) ? `${words}; put a text that contains { or [ in quotes` : words;
}

function wordsOf(error: unknown): string {
  const reason = reasonOf(error);
  return /call stack/i.test(reason) ? 'it is nested too deeply' : reason;
}

/**
 * The parsed value. Throws ConfigError with one line per problem: `name: path: expected value`. With `lineOf` the line
 * follows the name.
 */
export function checkConfig<T>(
  schema: z.ZodType<T>,
  value: unknown,
  name: string,
  fix: string,
  lineOf?: YamlText['lineOf'],
): T {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  if (value === null) throw new ConfigError(`${name}: is empty`, fix);
  const lines = parsed.error.issues.map((issue) => {
    const place = issue.code === 'unrecognized_keys' ? [...issue.path, issue.keys[0] ?? ''] : issue.path;
    return issueLine(issue, lineOf === undefined ? name : `${name}:${lineOf(place)}`);
  });
  const more = lines.length - PROBLEMS_SHOWN_MAX;
  const shown = [...lines.slice(0, PROBLEMS_SHOWN_MAX), ...(more > 0 ? [`and ${more} more`] : [])];
  throw new ConfigError(shown.join('\n'), fix);
}

/** One problem of a schema: `place: path: expected value`. */
export function issueLine(issue: z.core.$ZodIssue, place: string): string {
  return [place, ...(issue.path.length === 0 ? [] : [issue.path.join('.')]), describe(issue)].join(': ');
}

function describe(issue: z.core.$ZodIssue): string {
  if (issue.code === 'unrecognized_keys') {
    const more = issue.keys.length - KEYS_SHOWN_MAX;
    return `unknown key ${issue.keys.slice(0, KEYS_SHOWN_MAX).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
  }
  if (issue.code === 'custom') return issue.message;
  const text = issue.message
    .replace(/^(Invalid input|Too small|Too big|Invalid string): /, '')
    .replace(/, received undefined$/, ', but it is missing');
  return text.startsWith('expected') ? text : `expected ${text}`;
}
