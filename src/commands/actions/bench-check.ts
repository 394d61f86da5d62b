import { resolve } from 'node:path';
import { everyStep } from '../../bench/engine/target.ts';
import { type CheckResult, checkScenario } from '../../bench/scenarios/check.ts';
import { problemsError, readScenario, type Scenario } from '../../bench/scenarios/scenario.ts';
import { settingsOf, withSettings } from '../../bench/scenarios/settings.ts';
import { ConfigError } from '../../lib/errors.ts';
import { suggestion } from '../../lib/suggestion.ts';
import { remark, say } from '../shared/output.ts';
import { isFileName, LIBRARY, scenariosIn, type TargetOptions, withBoxes } from './bench-target.ts';

export interface CheckOptions extends Pick<TargetOptions, 'boxes'> {
  box?: string[];
  /** Variables as NAME=VALUE. */
  set: string[];
}

/**
 * Runs `paybox bench check`: prints a line for each valid scenario. Throws ConfigError with all problems of all files.
 */
export async function check(names: readonly string[], options: CheckOptions): Promise<void> {
  for (const { file, steps, boxes } of await readChecked(names, options)) {
    const count = [...everyStep(steps)].length;
    say(`${file}: ok, ${count} step${count === 1 ? '' : 's'}, ${boxes} box${boxes === 1 ? '' : 'es'}`);
  }
}

/**
 * Reads scenarios by file or by name, with the variables and boxes of the options. Warnings go to standard error. Throws
 * ConfigError with all problems of all files.
 */
export async function readChecked(names: readonly string[], options: CheckOptions): Promise<Scenario[]> {
  const files = await Promise.allSettled(names.map(async (name) => readScenario(await pathOf(name))));
  const unread = files.flatMap((it) => (it.status === 'rejected' ? [it.reason as unknown] : []));
  const [first] = unread;
  if (first !== undefined && (unread.length === 1 || !(first instanceof ConfigError))) throw first;
  if (unread.length > 0) throw problemsError(unread.map((it) => (it instanceof Error ? it.message : String(it))));
  const read = files.flatMap((it) => (it.status === 'fulfilled' ? [it.value] : []));
  const scenarios = withSettings(read, settingsOf(options.set)).map((it) =>
    withBoxes(it, { boxes: options.boxes, box: options.box ?? [] }),
  );
  const results = scenarios.map(checkScenario);
  const all = (which: keyof CheckResult) => [...new Set(results.flatMap((it) => it[which]))];
  const idle = options.boxes === undefined ? [] : idleBoxes(read, scenarios);
  const problems = all('problems');
  const hollow = problems.length > 0 ? [] : expectingNothing(scenarios);
  for (const warning of [...all('warnings'), ...idle, ...hollow]) remark(`warning: ${warning}`);
  if (problems.length > 0) throw problemsError(problems);
  return scenarios;
}

/** Warnings about boxes that the options add and no step uses. */
function idleBoxes(read: readonly Scenario[], scenarios: readonly Scenario[]): string[] {
  return scenarios.flatMap(({ file, steps, boxes }, index) => {
    const isUsed = [...everyStep(steps)].some((step) => step.box !== undefined || step['for each box'] !== undefined);
    if (isUsed || boxes <= (read[index]?.boxes ?? boxes)) return [];
    return `${file}: of ${boxes} boxes only the first is used: put the steps in \`for each box\`, or name a \`box\``;
  });
}

/** Warns about scenarios that would pass with any content of the screens. */
function expectingNothing(scenarios: readonly Scenario[]): string[] {
  return scenarios
    .filter(({ steps }) => [...everyStep(steps)].every(({ expect }) => expect === undefined))
    .map(({ file }) => `${file}: nothing expected: only the answers of its calls are judged; add an \`expect\``);
}

/** Returns a path, or the name of a scenario shipped with the program. */
async function pathOf(name: string): Promise<string> {
  if (isFileName(name)) return resolve(name);
  const library = await scenariosIn(LIBRARY);
  const found = library.get(name);
  if (found !== undefined) return found;
  const hint = suggestion(name, library.keys());
  const expected = 'expected a file that ends in .yaml, or the name of a scenario that is shipped';
  throw new ConfigError(`${name}: ${expected}${hint}`, '`paybox bench list` names them');
}
