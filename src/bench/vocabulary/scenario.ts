import { isUtf8 } from 'node:buffer';
import { readFile } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { z } from 'zod';
import { checkConfig, parseYaml, type YamlText } from '../../lib/config-file.ts';
import { ConfigError, reasonOf } from '../../lib/errors.ts';
import { type Step, steps } from './steps.ts';
import { LIMITS, name, text, value } from './values.ts';

const FIX = 'see `paybox bench list` for scenarios that work, and `paybox config schema scenario` for every key';

/** The schema of a scenario file; `paybox config schema scenario` prints it. Unknown keys are errors. */
export const scenarioSchema = z
  .strictObject({
    $schema: z.string().optional().describe('for editors'),
    name: text.describe('one line, for reports'),
    about: text.optional().describe('what it is for'),
    boxes: z.int().min(1).max(LIMITS.boxes).default(1).describe('how many it needs'),
    enrolled: z.boolean().default(true).describe('false: the boxes start without a secret'),
    variables: z.record(name, value).default({}).describe(`used as \${name}`),
    steps,
  })
  .describe(
    'A scenario of paybox bench: what a partner and a payer do, and what is expected of boxes, gateway and callbacks',
  );

/** A checked scenario. */
export interface Scenario extends z.output<typeof scenarioSchema> {
  /** File name for messages. */
  file: string;
  /** The file's folder, where its golden pictures are. */
  folder: string;
  /** Line of a step, counted from 1. */
  lineOf(path: readonly PropertyKey[]): number;
}

/** Reads and checks a scenario file. Throws ConfigError with file, line, path and what was expected. */
export async function readScenario(path: string): Promise<Scenario> {
  const bytes = await readFile(path).catch((error: unknown) => {
    throw new ConfigError(
      `${path}: cannot be read: ${reasonOf(error)}`,
      'name a scenario file, or one of `paybox bench list`',
    );
  });
  if (!isUtf8(bytes)) throw new ConfigError(`${basename(path)}: is no UTF-8 text`, 'save it as UTF-8');
  return parseScenario(bytes.toString('utf8'), basename(path), dirname(path));
}

/** Checks a scenario from text; `file` is its name in messages. Throws ConfigError. */
export function parseScenario(source: string, file: string, folder = '.'): Scenario {
  if (source.length > LIMITS.fileChars) {
    throw new ConfigError(`${file}: has ${source.length} characters, expected at most ${LIMITS.fileChars}`);
  }
  const yaml = parseYaml(source, file);
  const { lineOf } = yaml;
  const checked = checkConfig(scenarioSchema, yaml.value, file, FIX, lineOf);
  assertReadAsWritten(yaml, source, file);
  const stepsInAll = countOf(checked.steps, checked.boxes);
  if (stepsInAll > LIMITS.stepsInAll) {
    throw new ConfigError(`${file}: makes ${stepsInAll} steps with its repeats, expected at most ${LIMITS.stepsInAll}`);
  }
  return { ...checked, file, folder, lineOf };
}

/** Number of executed steps, counting each round and each box. */
function countOf(steps: readonly Step[], boxes: number): number {
  let count = 0;
  for (const { repeat, parallel = [], 'for each box': ofBox = [] } of steps) {
    count += 1 + boxes * countOf(ofBox, boxes);
    if (repeat !== undefined) count += repeat.times * countOf(repeat.steps, boxes);
    for (const branch of parallel) count += countOf(branch, boxes);
  }
  return count;
}

/** Numbers that YAML reads differently than people: 50.000 (fifty thousand, YAML: 50) and 007 (YAML: 7). */
const MISREAD = /^(?:0\d+|[1-9]\d{0,2}(?:\.\d{3})+)$/;

/** Throws ConfigError for a number that YAML reads differently than people. */
function assertReadAsWritten({ value, lineOf, rangeOf }: YamlText, source: string, file: string): void {
  for (const [path, number] of numbersIn(value)) {
    const written = source.slice(...(rangeOf(path) ?? [0, 0]));
    if (!MISREAD.test(written)) continue;
    const place = `${file}:${lineOf(path)}: ${path.join('.')}`;
    const digits = written.replaceAll('.', '');
    const fix = digits === written ? `"${written}" for a text` : `${digits}, or "${written}" for a text`;
    throw new ConfigError(`${place}: ${written} is read as the number ${number}`, `write ${fix}`);
  }
}

function* numbersIn(value: unknown, path: readonly string[] = []): Iterable<[path: readonly string[], number: number]> {
  if (typeof value === 'number') yield [path, value];
  if (typeof value !== 'object' || value === null) return;
  for (const [key, it] of Object.entries(value)) yield* numbersIn(it, [...path, key]);
}
