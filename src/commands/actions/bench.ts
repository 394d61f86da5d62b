import { resolve } from 'node:path';
import { pageOf } from '../../bench/reports/page.ts';
import { progressOn } from '../../bench/reports/progress.ts';
import type { Result } from '../../bench/reports/result.ts';
import { resultWithoutVerdict, runScenario } from '../../bench/run/run.ts';
import { capabilitiesNeeded } from '../../bench/target.ts';
import { readScenario } from '../../bench/vocabulary/scenario.ts';
import { systemClock } from '../../lib/clock.ts';
import { ConfigError } from '../../lib/errors.ts';
import { table } from '../../lib/text.ts';
import { shareGlyphs } from '../shared/glyph-cache.ts';
import { assertReports, finishRun } from '../shared/report-files.ts';
import { adminTokenOf, boxTokenOf, secretFrom } from '../shared/secrets.ts';
import { StopSignal } from '../shared/stop-signal.ts';
import { anySeed, isFileName, LIBRARY, scenariosIn, type TargetOptions, targetOf, withBoxes } from './bench-target.ts';

export interface BenchOptions {
  target?: string;
  gateway?: string;
  box: string[];
  boxes?: number;
  transport?: string | undefined;
  probe?: string;
  panel?: string;
  junit?: string;
  tap?: string;
  report?: string;
  seed?: number;
  updateGoldens?: boolean;
  username?: string;
  passwordFile?: string;
  account?: string;
  bank?: string;
  holder?: string;
  adminTokenFile?: string;
  boxTokenFile?: string;
}

/** `paybox bench run`: exit code 0 when nothing failed, 1 when something failed, 3 when a precondition was missing. */
export async function run(names: readonly string[], options: BenchOptions): Promise<void> {
  shareGlyphs();
  const scenarios = await Promise.all(
    names.map(async (name) => withBoxes(await readScenario(await pathOf(name)), options)),
  );
  const seed = options.seed ?? anySeed();
  await assertReports(options);
  const kind = targetOf(withSecrets(options), seed);
  const signal = new StopSignal().aborting();
  const progress = progressOn({ out: process.stdout, err: process.stderr }, { target: kind.name, seed });
  const startedAtMs = systemClock.wallMs();
  const results: Result[] = [];
  let isInterrupted = false;
  for (const [index, scenario] of scenarios.entries()) {
    progress.begin(scenario.name, index + 1, scenarios.length);
    try {
      const updateGoldens = options.updateGoldens === true;
      const onStep = (title: string) => progress.step(title);
      const result = await runScenario(scenario, kind, { seed, updateGoldens, signal, onStep });
      progress.end(result);
      results.push(result);
    } catch (error) {
      if (!signal.aborted) throw error;
      isInterrupted = true;
      for (const left of scenarios.slice(index)) {
        const result = resultWithoutVerdict(left, kind.name, seed, signal.reason);
        progress.end(result);
        results.push(result);
      }
      break;
    }
  }
  const page = () => pageOf(results, { startedAtMs });
  await finishRun(results, options, { startedAtMs, progress, isInterrupted, page });
}

/** `paybox bench list`: lists the scenarios shipped with the program. */
export async function list(options: { json?: boolean }): Promise<void> {
  const library = [...(await scenariosIn(LIBRARY))];
  const rows = await Promise.all(
    library.map(async ([scenario, path]) => {
      const read = await readScenario(path);
      const { name, about = '', boxes } = read;
      return { scenario, name, about, boxes, needs: [...capabilitiesNeeded(read)] };
    }),
  );
  if (options.json === true) for (const row of rows) process.stdout.write(`${JSON.stringify(row)}\n`);
  else process.stdout.write(`${table(rows.map((it) => [it.scenario, it.name]))}\n`);
}

/** A path, or the name of a scenario shipped with the program. */
async function pathOf(name: string): Promise<string> {
  if (isFileName(name)) return resolve(name);
  const library = await scenariosIn(LIBRARY);
  const found = library.get(name);
  if (found !== undefined) return found;
  const known = [...library.keys()].join(', ');
  throw new ConfigError(`bench run ${name}: expected a file that ends in .yaml, or one of ${known}`);
}

function withSecrets(options: BenchOptions): TargetOptions {
  const { passwordFile } = options;
  const password = passwordFile === undefined ? undefined : secretFrom('--password-file', passwordFile);
  return { ...options, password, adminToken: adminTokenOf(options), boxToken: boxTokenOf(options) };
}
