import { checkConfig } from '../../lib/config-file.ts';
import { ConfigError } from '../../lib/errors.ts';
import { withSuggestion } from '../../lib/schema-issues.ts';
import { everyStep } from '../engine/target.ts';
import { assertChecked } from '../scenarios/check.ts';
import { parseScenario, readScenario, type Scenario } from '../scenarios/scenario.ts';
import { withSettings } from '../scenarios/settings.ts';
import { noSource } from '../scenarios/source.ts';
import type { Step } from '../scenarios/steps.ts';
import type { ServerDeps } from './route.ts';
import type { RunOptions } from './runs.ts';
import { type RigRequest, rigRequest, runRequest, type TargetChoice } from './schemas.ts';

const FIX = 'GET /openapi.json has every key';
const GOLDEN_FIX = 'put it into a folder that the server is started with, as --scenarios DIR, and name it';

/** Returns whether a step compares with a golden picture, which only a scenario in a folder has. */
export function usesGolden(steps: readonly Step[]): boolean {
  return [...everyStep(steps)].some((step) => step.expect?.golden !== undefined);
}

/** Returns the run that a body asks for. Throws ConfigError, as `paybox bench run` does. */
export async function runOptions(body: unknown, id: string, deps: ServerDeps): Promise<RunOptions> {
  const { scenarios, variables, seed = deps.anySeed(), ...choice } = checkConfig(runRequest, body, 'body', FIX);
  const library = await deps.scenarios();
  const read = await Promise.all(scenarios.map((scenario) => scenarioOf(scenario, library)));
  const kind = await kindOf(choice, seed, id, deps);
  const set = withSettings(read, variables).map((scenario) => deps.withBoxes(scenario, choice));
  assertChecked(set);
  return { scenarios: set, kind, seed };
}

/** Returns the rig that a body asks for, with its kind of target. Throws ConfigError. */
export async function rigOptions(body: unknown, id: string, deps: ServerDeps) {
  const request = checkConfig(rigRequest, body ?? {}, 'body', FIX);
  const { seed = deps.anySeed(), target = request.gateway === undefined ? 'process' : 'at' } = request;
  const kind = await kindOf({ ...request, target }, seed, id, deps);
  if (request.callbackUrl !== undefined && target === 'at') {
    throw new ConfigError('body: callbackUrl: the gateway runs already', 'set it in the configuration of the gateway');
  }
  const scenario = scenarioFor(id, request);
  assertChecked([scenario]);
  return { request, kind, seed, scenario };
}

/** Returns a scenario without steps that stands for the rig. */
function scenarioFor(id: string, { boxes, box, enrolled, variables }: RigRequest): Scenario {
  const about = 'Driven step by step by a client.';
  const count = boxes ?? Math.max(1, box.length);
  return { name: id, about, boxes: count, enrolled, variables, steps: [], file: id, source: noSource(id) };
}

async function scenarioOf(
  scenario: string | { yaml: string; file: string },
  library: ReadonlyMap<string, string>,
): Promise<Scenario> {
  if (typeof scenario === 'string') {
    const path = library.get(scenario);
    if (path !== undefined) return readScenario(path);
    const known = [...library.keys()].join(', ');
    throw new ConfigError(
      withSuggestion(`scenario ${scenario}: expected one of ${known}`, scenario),
      'send the text of a file as { "yaml": TEXT }, or start the server with --scenarios DIR',
    );
  }
  const read = parseScenario(scenario.yaml, scenario.file);
  if (usesGolden(read.steps)) {
    throw new ConfigError(`${scenario.file}: golden: a text has no folder to take pictures from`, GOLDEN_FIX);
  }
  return read;
}

async function kindOf(choice: TargetChoice, seed: number, id: string, deps: ServerDeps) {
  const known = ['screen', ...deps.probes];
  if (!known.includes(choice.probe)) {
    throw new ConfigError(
      withSuggestion(`body: probe: expected one of ${known.join(', ')}`, choice.probe),
      'a probe runs a command or reads a file, so the server has to be started with it: --probe HOW',
    );
  }
  return deps.targetOf(choice, seed, id);
}
