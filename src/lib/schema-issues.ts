import type { z } from 'zod';
import { suggestion } from './suggestion.ts';

const KEYS_SHOWN_MAX = 8;
/** Matches the end of a message that lists a closed set of words. */
const LISTED = /\bone of ([^\s,]+(?:, [^\s,]+)*)$/;

/** Matches names of fields that hold an account number. */
const ACCOUNT = /acc(?:ount|_?id|no|$)/i;
const NUMBER_FOR_TEXT = 'expected a text, received a number';

/** The kinds of values in words for a person, by the schema library's names. */
const KINDS: Readonly<Record<string, string>> = {
  string: 'a text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  object: 'an object',
  record: 'an object',
  array: 'a list',
};
const LIMITS: Readonly<Record<string, string>> = {
  '>=': 'at least',
  '<=': 'at most',
  '>': 'more than',
  '<': 'less than',
};

/** Holds a checked value and its schema. With both, a message can suggest the intended word. */
export interface Checked {
  schema: z.core.$ZodType;
  value: unknown;
}

/** Describes a problem that a schema found, in words for a person. */
export function expectedBy(issue: z.core.$ZodIssue, checked?: Checked): string {
  if (issue.code === 'unrecognized_keys') {
    // A schema may say more about a key than that it is unknown.
    if (!issue.message.startsWith('Unrecognized key')) return issue.message;
    const known = checked === undefined ? [] : keysAt(checked.schema, issue.path, checked.value);
    const shown = issue.keys.slice(0, KEYS_SHOWN_MAX).map((key, _, { length }) => {
      const hint = suggestion(key, known);
      return length === 1 || hint === '' ? `${key}${hint}` : `${key} (${hint.slice(2)})`;
    });
    const more = issue.keys.length - KEYS_SHOWN_MAX;
    return `unknown key ${shown.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
  }
  const given = checked && valueAt(checked.value, issue.path);
  const isUnquoted = issue.message.startsWith('Invalid input: expected string') && isScalar(given);
  const words = withSuggestion(wordsOf(issue), given);
  if (ACCOUNT.test(String(issue.path.at(-1))) && words.endsWith(NUMBER_FOR_TEXT)) {
    return `${words}, which loses a leading 0: put it in quotes`;
  }
  return isUnquoted ? `${words}: put it in quotes` : words;
}

/** Returns whether YAML reads an unquoted word as this value instead of as text. */
function isScalar(value: unknown): boolean {
  return typeof value === 'number' || typeof value === 'boolean';
}

/** Appends the probably intended word to a message that ends in a closed set of words. */
export function withSuggestion(message: string, given: unknown): string {
  const [, listed] = LISTED.exec(message) ?? [];
  if (listed === undefined || typeof given !== 'string') return message;
  return `${message}${suggestion(given, listed.split(', '))}`;
}

function wordsOf(issue: z.core.$ZodIssue): string {
  if (issue.code === 'custom') return issue.message;
  if (issue.code === 'invalid_key') return wordsOfKey(issue.issues);
  const choices =
    issue.code === 'invalid_union' && issue.message === 'Invalid input' ? wordsOfChoices(issue.errors) : '';
  if (choices !== '') return choices;
  const text = issue.message
    .replace(/^(Invalid input|Invalid option|Too small|Too big|Invalid string): /, '')
    .replace(/^Invalid discriminator value\. Expected /, 'expected one of ')
    .replace(/, received undefined$/, ', but it is missing')
    .replace(/^must match pattern /, 'a text that matches ')
    .replace(/^must (start|end) with /, 'a text that $1s with ')
    .replace(/^must include /, 'a text that includes ')
    .replace(/^Invalid number: must be /, '')
    .replace(/^Invalid input$/, 'another value')
    .replace(/expected int, received number$/, 'expected int')
    .replace(/^Invalid /, 'a valid ')
    .replace(/\b(expected|received) ([a-z]+)\b(?! of)/g, (all, verb, kind) =>
      KINDS[kind] ? `${verb} ${KINDS[kind]}` : all,
    )
    .replace(/ to (?:be|have) ([<>]=?|exactly )/, (_, sign) => ` of ${LIMITS[sign] ?? 'exactly'} `)
    .replace(/\b1 (item|character)s$/, '1 $1')
    .replace(/ of at (?:least -|most )9007199254740991$/, ' of at most 15 digits');
  const words = text.startsWith('expected one of') ? text.replaceAll(/["']/g, '').replaceAll(/ ?\| ?/g, ', ') : text;
  return words.startsWith('expected') ? words : `expected ${words}`;
}

/** Describes a key of an object that its schema refuses. */
function wordsOfKey(issues: readonly z.core.$ZodIssue[]): string {
  const [first] = issues;
  return first === undefined ? 'expected another key' : wordsOf(first).replace(/^expected /, 'expected as its key ');
}

/** Describes a value that fits no alternative of a union, by what each one expects of it as a whole. */
function wordsOfChoices(alternatives: readonly (readonly z.core.$ZodIssue[])[]): string {
  const firsts = alternatives.map((issues) => issues.find(({ path }) => path.length === 0));
  // An alternative without one has the right kind, and only a part of it is wrong.
  if (firsts.includes(undefined)) return '';
  const texts = firsts.flatMap((it) => (it ? wordsOf(it).replace(/^expected |, received .*$/g, '') : []));
  return `expected ${[...new Set(texts)].join(' or ')}`;
}

/** Returns the value at a path; undefined if there is none. */
export function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  let found = value;
  for (const key of path) found = Object(found)[key];
  return found;
}

/**
 * Returns the keys that a schema knows at a path of a value. In a union it returns those of the alternative that a
 * discriminator names, or of all alternatives.
 */
function keysAt(schema: z.core.$ZodType, path: readonly PropertyKey[], value: unknown): string[] {
  const { def } = schema._zod as z.core.$ZodTypes['_zod'];
  const [key, ...rest] = path;
  const inside = (inner: z.core.$ZodType | undefined) =>
    inner === undefined || key === undefined ? [] : keysAt(inner, rest, Object(value)[key]);
  switch (def.type) {
    case 'object':
      return key === undefined ? Object.keys(def.shape) : inside(def.shape[String(key)]);
    case 'array':
      return inside(def.element);
    case 'record':
      return inside(def.valueType);
    case 'union':
      return alternatives(def, value).flatMap((it) => keysAt(it, path, value));
    case 'pipe':
      return [def.in, def.out].flatMap((it) => keysAt(it, path, value));
    case 'lazy':
      return keysAt(def.getter(), path, value);
    case 'optional':
    case 'nullable':
    case 'default':
    case 'prefault':
    case 'readonly':
    case 'catch':
      return keysAt(def.innerType, path, value);
    default:
      return [];
  }
}

/** Returns the alternatives of a union that a value may be; with a discriminator, only the one that it names. */
function alternatives(def: z.core.$ZodUnionDef, value: unknown): readonly z.core.$ZodType[] {
  if (!('discriminator' in def)) return def.options;
  const key = String(def.discriminator);
  return def.options.filter((it) => it._zod.propValues?.[key]?.has(Object(value)[key]));
}
