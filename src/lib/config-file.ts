import { readFile } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { LineCounter, parseDocument } from 'yaml';
import type { z } from 'zod';
import { ConfigError, reasonOf } from './errors.ts';

const PROBLEMS_SHOWN_MAX = 8;
const KEYS_SHOWN_MAX = 8;
const CONFIG_CHARS_MAX = 65_536;

/** What a YAML file holds, not yet checked. */
export interface ConfigFile {
  /** The file's name, as messages call it. */
  name: string;
  /** The file's folder, from which its relative paths are taken. */
  folder: string;
  value: unknown;
}

/** Reads a YAML file. Throws ConfigError, for a syntax error with line and column. */
export async function readConfigFile(path: string): Promise<ConfigFile> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    throw new ConfigError(`${path}: cannot be read: ${reasonOf(error)}`, 'name an existing file with --config');
  });
  const name = basename(path);
  if (text.length > CONFIG_CHARS_MAX) {
    throw new ConfigError(`${name}: has ${text.length} characters, expected at most ${CONFIG_CHARS_MAX}`);
  }
  return { name, folder: dirname(path), value: parsedYaml(text, name) };
}

/** Throws ConfigError. The parser itself throws for aliases that name nothing or multiply, and for endless nesting. */
function parsedYaml(text: string, name: string): unknown {
  const lines = new LineCounter();
  try {
    const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
    const [problem] = document.errors;
    if (problem === undefined) return document.toJS();
    const { line, col } = lines.linePos(problem.pos[0]);
    throw new ConfigError(`${name}:${line}:${col}: not valid YAML: ${wordsOf(problem)}`);
  } catch (error) {
    throw error instanceof ConfigError ? error : new ConfigError(`${name}: not valid YAML: ${wordsOf(error)}`);
  }
}

function wordsOf(error: unknown): string {
  const reason = reasonOf(error);
  return /call stack/i.test(reason) ? 'it is nested too deeply' : reason;
}

/** The value as the schema makes it. Throws ConfigError: `name: path: what was expected`, a line a problem. */
export function checkConfig<T>(schema: z.ZodType<T>, value: unknown, name: string, fix: string): T {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const lines = parsed.error.issues.map((issue) =>
    [name, ...(issue.path.length === 0 ? [] : [issue.path.join('.')]), describe(issue)].join(': '),
  );
  const more = lines.length - PROBLEMS_SHOWN_MAX;
  const shown = [...lines.slice(0, PROBLEMS_SHOWN_MAX), ...(more > 0 ? [`and ${more} more`] : [])];
  throw new ConfigError(shown.join('\n'), fix);
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
