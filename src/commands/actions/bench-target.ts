import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { probeOf } from '../../bench/engine/probes.ts';
import type { Probe, TargetKind } from '../../bench/engine/target.ts';
import { externalTarget, type GatewayOptions } from '../../bench/engine/targets/external.ts';
import { processTarget } from '../../bench/engine/targets/process.ts';
import { isPanelName, PANEL_NAMES } from '../../bench/panels/emulator.ts';
import type { Scenario } from '../../bench/scenarios/scenario.ts';
import { dialectNamed, transportNamed } from '../../device/agent/transports/registry.ts';
import { ConfigError } from '../../lib/errors.ts';
import { seededRandom, systemRandom } from '../../lib/random.ts';
import { withSuggestion } from '../../lib/schema-issues.ts';
import { fileLog } from '../shared/daemon.ts';
import { assertHidden } from '../shared/secrets.ts';
import { emulatedTarget } from './bench-emulated.ts';

/** Target options of a run, named like those of `paybox bench run`. Secrets are values, not files. */
export interface TargetOptions extends Omit<GatewayOptions, 'gateway'> {
  target?: string | undefined;
  gateway?: string | undefined;
  box: readonly string[];
  boxToken?: string | undefined;
  boxes?: number | undefined;
  transport?: string | undefined;
  /** The dialect that gateway and boxes speak; their own if undefined. */
  dialect?: string | undefined;
  /** Default: the panel if there is one, otherwise the screen. */
  probe?: string | undefined;
  /** Display of the boxes that the bench starts. */
  panel?: string | undefined;
  /** The folder for logs; undefined discards them. */
  report?: string | undefined;
  /** Folder in it for the logs of programs; `logs` if undefined. */
  logs?: string | undefined;
  /** `shared`: programs of others take part, so emulated boxes skip time on request only. */
  time?: 'shared' | undefined;
}

/** Scenarios shipped with the program. */
export const LIBRARY = fileURLToPath(new URL('../../../test/scenarios/', import.meta.url));
const SCENARIO_FILE = /\.ya?ml$/;
const SEED_LIMIT = 1_000_000;

/** Returns a random seed, for a run without one. */
export function anySeed(): number {
  return Math.floor(systemRandom.fraction() * SEED_LIMIT);
}

/** Lists the scenario files of a folder by name, sorted. */
export async function scenariosIn(folder: string): Promise<Map<string, string>> {
  const files = (await readdir(folder)).filter((name) => SCENARIO_FILE.test(name)).sort();
  return new Map(files.map((file) => [file.replace(SCENARIO_FILE, ''), join(folder, file)]));
}

/** Returns whether a name is a file name and not a scenario's name. */
export function isFileName(name: string): boolean {
  return SCENARIO_FILE.test(name) || name.includes('/');
}

/** Returns the scenario with as many boxes as the options ask for or list. */
export function withBoxes(scenario: Scenario, { boxes, box }: TargetOptions): Scenario {
  const there = boxes ?? (scenario.boxes < box.length ? box.length : scenario.boxes);
  return { ...scenario, boxes: Math.max(scenario.boxes, there) };
}

/** Returns the kind of target from the options. Throws ConfigError that names the option. */
export function targetOf(options: TargetOptions, seed: number): TargetKind {
  const name = options.target ?? (options.gateway === undefined ? 'emulated' : 'at');
  const { panel, dialect } = options;
  const transport =
    dialect === undefined ? transportNamed('--transport', options.transport) : dialectNamed('--dialect', dialect);
  if (dialect !== undefined && options.transport !== undefined) {
    throw new ConfigError('--dialect and --transport: expected one of them, a dialect has its own transport');
  }
  const { probe = panel === undefined ? 'screen' : 'panel' } = options;
  if (name === 'at') {
    if (dialect !== undefined) {
      throw new ConfigError('--dialect belongs to --target emulated and process: boxes that run have theirs already');
    }
    if (panel !== undefined) throw new ConfigError('--panel belongs to --target emulated and process, not to at');
    return runningTarget(options, probeOf(probe));
  }
  if (options.gateway !== undefined || options.box.length > 0) {
    throw new ConfigError(`--gateway and --box belong to --target at, not to ${name}`);
  }
  if (panel !== undefined && !isPanelName(panel)) {
    throw new ConfigError(withSuggestion(`--panel ${panel}: expected one of ${PANEL_NAMES.join(', ')}`, panel));
  }
  const own = { transport, panel, probe: probe === 'panel' ? probe : probeOf(probe) } as const;
  if (probe === 'panel' && panel === undefined) {
    throw new ConfigError('--probe panel: the boxes have no panel', 'give --panel too');
  }
  if (name === 'emulated') {
    const log = fileLog(options.report && join(options.report, 'bench.log'));
    return emulatedTarget({ ...own, log, random: seededRandom(seed), isShared: options.time === 'shared' });
  }
  if (options.time !== undefined) throw new ConfigError(`time belongs to target emulated, not to ${name}`);
  if (name !== 'process') throw new ConfigError(`--target ${name}: expected emulated, process or at`);
  const program = [process.execPath, process.argv[1] ?? ''] as const;
  const logDir = options.report === undefined ? undefined : join(options.report, options.logs ?? 'logs');
  return processTarget({ ...own, program, random: systemRandom, logDir });
}

function runningTarget(options: TargetOptions, probe: Probe): TargetKind {
  const { gateway, box, username, password, account, bank, holder, adminToken, boxToken } = options;
  if (gateway === undefined || !URL.canParse(gateway)) {
    throw new ConfigError('--target at: expected --gateway, the origin of a gateway, as http://127.0.0.1:8800');
  }
  const wrong = box.find((url) => !URL.canParse(url));
  if (wrong !== undefined || box.length === 0) {
    throw new ConfigError(
      `--box ${wrong ?? 'is missing'}: expected the origin of a box's pages, as http://127.0.0.1:8810`,
    );
  }
  assertHidden(adminToken, '--gateway', gateway);
  return externalTarget({
    gateway,
    boxes: box,
    username,
    password,
    account,
    bank,
    holder,
    adminToken,
    boxToken,
    probe,
  });
}
