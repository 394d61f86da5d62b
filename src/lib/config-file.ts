import { existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { z } from 'zod';
import { ConfigError, reasonOf, systemCodeOf } from './errors.ts';
import { readFileNow } from './files.ts';
import { readGiven } from './given-files.ts';
import { type Checked, expectedBy } from './schema-issues.ts';
import { textOfFile } from './text-file.ts';

/** The one file that a person puts on a box's boot partition has this name. */
export const BOX_FILE = 'paybox.yaml';

const PROBLEMS_SHOWN_MAX = 8;
/** Limits the file of one device or run, because the parser is slow on large files. */
const CONFIG_CHARS_MAX = 65_536;
/** UTF-8 needs at most this many bytes for one character. */
const UTF8_BYTES_MAX = 4;

/** Returns where in a file the value at a path stands: `3:5`, or `3`. */
type PlaceOf = (path: readonly PropertyKey[]) => string | number;

/** Where a configuration stands. */
export interface FilePlace {
  /** The file's path as the user wrote it, for messages. */
  name: string;
  /** The file's folder. Relative paths start here. */
  folder: string;
}

/** A parsed YAML file, not yet validated. */
export interface ConfigFile extends FilePlace {
  value: unknown;
  /** Finds line and column of the value at a path. It is undefined for JSON that a program wrote. */
  placeOf: PlaceOf | undefined;
}

/** Reads a YAML file of at most `charsMax` characters. Throws ConfigError, for a syntax error with line and column. */
export async function readConfigFile(path: string, charsMax = CONFIG_CHARS_MAX): Promise<ConfigFile> {
  const text = textOf(path, charsMax);
  if (text.length > charsMax) {
    throw new ConfigError(`${path}: has ${text.length} characters, expected at most ${charsMax}`);
  }
  const written = asWritten(text);
  const { value, placeOf } = written === undefined ? await parsed(text, path) : { value: written };
  return { name: path, folder: dirname(path), value, placeOf };
}

function textOf(path: string, charsMax: number): string {
  let bytes: Buffer;
  try {
    bytes = readGiven(path, charsMax * UTF8_BYTES_MAX);
  } catch (error) {
    throw new ConfigError(`${path}: cannot be read: ${readProblem(error)}`, remedyFor(path, error));
  }
  return textOfFile(bytes, path);
}

/** Returns the remedy. The package puts an example beside a configuration that does not exist yet. */
function remedyFor(path: string, error: unknown): string {
  const example = path.replace(/\.yaml$/, '.example.yaml');
  const isFresh = systemCodeOf(error) === 'ENOENT' && example !== path && existsSync(example);
  return isFresh ? `copy ${example} there, and set your values` : 'name a file that exists and may be read';
}

/** Returns in words why a file cannot be read. */
export function readProblem(error: unknown): string {
  const code = systemCodeOf(error);
  if (code === 'ENOENT') return 'there is no such file';
  if (code === 'EACCES') return 'this user may not read it';
  return code === 'EISDIR' ? 'it is a folder' : reasonOf(error);
}

/**
 * Returns the value of JSON that a program wrote; undefined for anything else. This skips the YAML parser, which takes
 * time to load. JSON with a duplicate key differs from its own rewriting, so the YAML parser reports it.
 */
function asWritten(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return JSON.stringify(value) === text ? value : undefined;
  } catch {
    return undefined;
  }
}

async function parsed(text: string, name: string): Promise<Pick<ConfigFile, 'value' | 'placeOf'>> {
  const { parseYaml } = await import('./yaml-text.ts');
  return parseYaml(text, name);
}

/**
 * Returns the secret in the file that an option of a configuration names. Throws ConfigError, which never quotes the
 * secret.
 */
export function readSecretFile(
  { option, file }: { option: string; file: string },
  { name, folder }: FilePlace,
  schema: z.ZodType<string>,
): string {
  const path = resolve(folder, file);
  let bytes: Buffer;
  try {
    bytes = readFileNow(path);
  } catch (error) {
    throw new ConfigError(`${name}: ${option}: cannot be read: ${reasonOf(error)}`, `put the secret into ${path}`);
  }
  const parsed = schema.safeParse(textOfFile(bytes, path).trim());
  if (parsed.success) return parsed.data;
  throw new ConfigError(`${name}: ${option}: ${parsed.error.issues[0]?.message} in ${path}`);
}

/**
 * Returns the validated value. Throws ConfigError with one line per problem: `name: path: expected value`. With
 * `placeOf`, the place in the file stands after the name.
 */
export function checkConfig<T>(schema: z.ZodType<T>, value: unknown, name: string, fix: string, placeOf?: PlaceOf): T {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  if (value === null) throw new ConfigError(`${name}: is empty`, fix);
  const lines = parsed.error.issues.map((issue) => {
    const place = issue.code === 'unrecognized_keys' ? [...issue.path, issue.keys[0] ?? ''] : issue.path;
    return issueLine(issue, placeOf === undefined ? name : `${name}:${placeOf(place)}`, { schema, value });
  });
  const more = lines.length - PROBLEMS_SHOWN_MAX;
  const shown = [...lines.slice(0, PROBLEMS_SHOWN_MAX), ...(more > 0 ? [`and ${more} more`] : [])];
  throw new ConfigError(shown.join('\n'), fix);
}

/** Describes one problem of a schema: `place: path: expected value`. */
export function issueLine(issue: z.core.$ZodIssue, place: string, checked: Checked): string {
  return [place, ...(issue.path.length === 0 ? [] : [issue.path.join('.')]), expectedBy(issue, checked)].join(': ');
}
