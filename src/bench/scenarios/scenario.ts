import { basename, dirname, resolve } from 'node:path';
import { z } from 'zod';
import { issueLine, readProblem } from '../../lib/config-file.ts';
import { ConfigError } from '../../lib/errors.ts';
import { readGiven } from '../../lib/given-files.ts';
import type { Checked } from '../../lib/schema-issues.ts';
import { textOfFile } from '../../lib/text-file.ts';
import { parseYaml, type YamlText } from '../../lib/yaml-text.ts';
import { type Source, sourceOf } from './source.ts';
import { listsIn, type Step, steps } from './steps.ts';
import { duration, LIMITS, name, text, value } from './values.ts';

const FIX = 'see `paybox bench list` for scenarios that work, and `paybox config schema scenario` for every key';
const PROBLEMS_MAX = 20;

const variables = z.record(name, value).default({}).describe(`used as \${name}; --set NAME=VALUE replaces one`);
const boxes = z.int().min(1).max(LIMITS.boxes).default(1).describe('how many it needs');

/** The schema of a scenario file; `paybox config schema scenario` prints it. Unknown keys are errors. */
export const scenarioSchema = z
  .strictObject({
    $schema: z.string().optional().describe('for editors'),
    name: text.describe('one line, for reports'),
    about: text.optional().describe('what it is for'),
    boxes,
    enrolled: z.boolean().default(true).describe('false: the boxes start without a secret'),
    limit: duration.optional().describe('it fails when it takes longer, in the time of its boxes'),
    variables,
    steps,
  })
  .describe(
    'A scenario of paybox bench: what a partner and a payer do, and what is expected of boxes, gateway and callbacks',
  );

/** The keys of a file that is included. A scenario without `limit` and `enrolled` can be included too. */
const includedSchema = z.strictObject({
  $schema: z.string().optional(),
  name: text.optional(),
  about: text.optional(),
  boxes,
  variables,
  steps,
});

/** A checked scenario. */
export interface Scenario extends z.output<typeof scenarioSchema> {
  /** The name of the file for messages. */
  file: string;
  source: Source;
}

/** Reads a scenario file, and those that it includes. Throws ConfigError with file, line, column, path and what was expected. */
export async function readScenario(path: string): Promise<Scenario> {
  return parseScenario(textOf(path), basename(path), dirname(resolve(path)), [resolve(path)]);
}

/**
 * Reads a scenario from text. `file` is its name in messages. Without a folder it cannot include files. `within` lists
 * the files that are being read. Throws ConfigError.
 */
export function parseScenario(
  written: string,
  file: string,
  folder?: string,
  within: readonly string[] = [],
): Scenario {
  const { checked, source } = checkedFile(scenarioSchema, written, file, folder ?? '.');
  const reading: Reading = { folder, within, includes: { left: LIMITS.includes }, boxes: checked.boxes };
  const own = checked.steps.map((step, index) => withIncluded(step, ['steps', index], source, reading));
  const scenario = { ...checked, steps: own, boxes: reading.boxes, file, source };
  const stepsInAll = countOf(own, scenario.boxes);
  if (stepsInAll > LIMITS.stepsInAll) {
    throw new ConfigError(`${file}: makes ${stepsInAll} steps with its repeats, expected at most ${LIMITS.stepsInAll}`);
  }
  return scenario;
}

/** The most bytes that one character can have. */
const UTF8_BYTES_MAX = 4;

function textOf(path: string, named = path): string {
  let bytes: Buffer;
  try {
    bytes = readGiven(path, LIMITS.fileChars * UTF8_BYTES_MAX);
  } catch (error) {
    const fix = 'name a scenario file, or one of `paybox bench list`';
    throw new ConfigError(`${named}: cannot be read: ${readProblem(error)}`, fix);
  }
  return textOfFile(bytes, basename(path));
}

/** Returns the value of a file by its schema. Throws ConfigError with every problem and its place. */
function checkedFile<T>(schema: z.ZodType<T>, written: string, file: string, folder: string) {
  if (written.length > LIMITS.fileChars) {
    throw new ConfigError(`${file}: has ${written.length} characters, expected at most ${LIMITS.fileChars}`);
  }
  const yaml = parseYaml(written, file);
  const source = sourceOf(yaml, written, file, folder);
  const parsed = schema.safeParse(yaml.value);
  if (!parsed.success) {
    if (yaml.value === null) throw new ConfigError(`${file}: is empty`, FIX);
    throw problemsError(parsed.error.issues.map((issue) => lineFor(issue, source, { schema, value: yaml.value })));
  }
  assertReadAsWritten(yaml, written, source);
  return { checked: parsed.data, source };
}

/** Describes one problem of a schema in a line, with its column. */
function lineFor(issue: z.core.$ZodIssue, source: Source, checked: Checked): string {
  const place = issue.code === 'unrecognized_keys' ? [...issue.path, issue.keys[0] ?? ''] : issue.path;
  const { line, column } = source.placeOf(place);
  return issueLine(issue, `${source.file}:${line}:${column}`, checked);
}

/** Returns one error for all problems. */
export function problemsError(problems: readonly string[]): ConfigError {
  const more = problems.length - PROBLEMS_MAX;
  const shown = [...problems.slice(0, PROBLEMS_MAX), ...(more > 0 ? [`and ${more} more`] : [])];
  return new ConfigError(shown.join('\n'), FIX);
}

/** The state while a scenario and its included files are read. */
interface Reading {
  folder: string | undefined;
  /** The paths of the files around the current one, and its own. */
  within: readonly string[];
  includes: { left: number };
  /** The number of boxes that the scenario and all its included files need. */
  boxes: number;
}

/** Returns the step with the steps of included files in it, at any depth. Throws ConfigError. */
function withIncluded(step: Step, path: readonly (string | number)[], source: Source, reading: Reading): Step {
  const deep = (steps: readonly Step[], ...more: (string | number)[]) =>
    steps.map((it, index) => withIncluded(it, [...path, ...more, index], source, reading));
  const { repeat, parallel, then, else: otherwise, include } = step;
  const each = step['for each box'];
  return {
    ...step,
    ...(repeat && { repeat: { ...repeat, steps: deep(repeat.steps, 'repeat', 'steps') } }),
    ...(parallel && { parallel: parallel.map((branch, index) => deep(branch, 'parallel', index)) }),
    ...(each && { 'for each box': deep(each, 'for each box') }),
    // biome-ignore lint/suspicious/noThenProperty: a step is never awaited
    ...(then && { then: deep(then, 'then') }),
    ...(otherwise && { else: deep(otherwise, 'else') }),
    ...(include === undefined ? {} : { included: included(include, [...path, 'include'], source, reading) }),
  };
}

function included(name: string, place: readonly (string | number)[], source: Source, reading: Reading) {
  const { folder, within, includes } = reading;
  const { line, column } = source.placeOf(place);
  const fail = (words: string, fix = '') => new ConfigError(`${source.file}:${line}:${column}: include: ${words}`, fix);
  if (folder === undefined) throw fail('a text has no folder to include files from', 'run it from a file');
  const path = resolve(folder, name);
  if (within.includes(path))
    throw fail(`${name} includes itself: ${[...within, path].map((it) => basename(it)).join(' → ')}`);
  if (within.length > LIMITS.includeDepth) throw fail(`is nested deeper than ${LIMITS.includeDepth} files`);
  includes.left -= 1;
  if (includes.left < 0) throw fail(`makes more than ${LIMITS.includes} files`);
  const file = checkedFile(
    includedSchema,
    textOf(path, `${source.file}:${line}:${column}: include: ${name}`),
    name,
    dirname(path),
  );
  const inner: Reading = { ...reading, folder: dirname(path), within: [...within, path] };
  const steps = file.checked.steps.map((it, index) => withIncluded(it, ['steps', index], file.source, inner));
  reading.boxes = Math.max(reading.boxes, inner.boxes, file.checked.boxes);
  return { source: file.source, steps, variables: file.checked.variables };
}

/**
 * Returns the number of executed steps, counting each round and each box. Where a variable gives the number of rounds,
 * they are counted when they run.
 */
function countOf(steps: readonly Step[], boxes: number): number {
  let count = 0;
  for (const step of steps) {
    const { repeat, 'for each box': each } = step;
    const rounds = typeof repeat?.times === 'number' ? repeat.times : 1;
    const times = each === undefined ? rounds : boxes;
    count += 1;
    for (const list of listsIn(step)) count += times * countOf(list.steps, boxes);
  }
  return count;
}

/** YAML reads these numbers in another way than people: 50.000 is fifty thousand, and 50 in YAML. */
const MISREAD = /^[1-9]\d{0,2}(?:\.\d{3})+$/;

/** Checks a number. Throws ConfigError if YAML reads it differently from people. */
function assertReadAsWritten({ value, rangeOf }: YamlText, text: string, source: Source): void {
  for (const [path, number] of numbersIn(value)) {
    const written = text.slice(...(rangeOf(path) ?? [0, 0]));
    if (!MISREAD.test(written)) continue;
    const { line, column } = source.placeOf(path);
    const digits = written.replaceAll('.', '');
    throw new ConfigError(
      `${source.file}:${line}:${column}: ${path.join('.')}: ${written} is read as the number ${number}`,
      `write ${digits}, or "${written}" for a text`,
    );
  }
}

function* numbersIn(value: unknown, path: readonly string[] = []): Iterable<[path: readonly string[], number: number]> {
  if (typeof value === 'number') yield [path, value];
  if (typeof value !== 'object' || value === null) return;
  for (const [key, it] of Object.entries(value)) yield* numbersIn(it, [...path, key]);
}
