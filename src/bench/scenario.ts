import { readFile } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { z } from 'zod';
import { checkConfig, parseYaml } from '../lib/config-file.ts';
import { ConfigError, reasonOf } from '../lib/errors.ts';
import { steps } from './vocabulary/steps.ts';
import { LIMITS, name, text, value } from './vocabulary/values.ts';

const FIX = 'see `paybox bench list` for scenarios that work, and `paybox config schema scenario` for every key';

/** What a scenario file holds; `paybox config schema scenario` prints it. Unknown keys are errors. */
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
  /** The file's name, as messages call it. */
  file: string;
  /** The file's folder, from which its golden pictures are taken. */
  folder: string;
  /** The line of a step, from 1 on. */
  lineOf(path: readonly PropertyKey[]): number;
}

/** Reads and checks a scenario file. Throws ConfigError: file, line, path and what was expected. */
export async function readScenario(path: string): Promise<Scenario> {
  const source = await readFile(path, 'utf8').catch((error: unknown) => {
    throw new ConfigError(
      `${path}: cannot be read: ${reasonOf(error)}`,
      'name a scenario file, or one of `paybox bench list`',
    );
  });
  return parseScenario(source, basename(path), dirname(path));
}

/** Checks a scenario that may not be from a file, as `file` in messages. Throws ConfigError. */
export function parseScenario(source: string, file: string, folder = '.'): Scenario {
  if (source.length > LIMITS.fileChars) {
    throw new ConfigError(`${file}: has ${source.length} characters, expected at most ${LIMITS.fileChars}`);
  }
  const { value, lineOf } = parseYaml(source, file);
  const checked = checkConfig(scenarioSchema, value, file, FIX, lineOf);
  return { ...checked, file, folder, lineOf };
}
