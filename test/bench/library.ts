import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Result } from '../../src/bench/engine/reports/result.ts';
import { runScenario } from '../../src/bench/engine/run/run.ts';
import { capabilitiesNeeded, type TargetKind } from '../../src/bench/engine/target.ts';
import { parseScenario } from '../../src/bench/scenarios/scenario.ts';
import { emulated, SEED } from './setup.ts';

export const PASSED = { outcome: 'passed', reason: '', where: undefined };
const LIBRARY = resolve(import.meta.dirname, '../scenarios');

/** The files of the scenarios that come with the program. */
export function scenarios(): string[] {
  return readdirSync(LIBRARY).filter((name) => name.endsWith('.yaml'));
}

/** Whether a scenario orders faults by their names. */
export function ordersFaults(name: string): boolean {
  return [...capabilitiesNeeded(parsed(name))].some((need) => need.startsWith('order faults'));
}

/** How a scenario of the library comes out, on emulated boxes unless another target is given. */
export async function verdictOn(
  name: string,
  { kind = emulated(), change }: { kind?: TargetKind; change?: (source: string) => string } = {},
): Promise<Pick<Result, 'outcome' | 'reason' | 'where'>> {
  const options = { seed: SEED, updateGoldens: false, signal: new AbortController().signal, onStep: () => undefined };
  const { outcome, reason, where } = await runScenario(parsed(name, change), kind, options);
  return { outcome, reason, where };
}

function parsed(name: string, change = (source: string) => source) {
  return parseScenario(change(readFileSync(join(LIBRARY, name), 'utf8')), name, LIBRARY);
}
