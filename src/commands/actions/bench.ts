import { appendFile } from 'node:fs/promises';
import { join } from 'node:path';
import { annotationsOf, summaryOf } from '../../bench/engine/reports/github.ts';
import { jsonOf } from '../../bench/engine/reports/json.ts';
import { pageOf } from '../../bench/engine/reports/page.ts';
import { progressOn } from '../../bench/engine/reports/progress.ts';
import type { Judged } from '../../bench/engine/reports/result.ts';
import { chosen, type Shard } from '../../bench/engine/run/choice.ts';
import { runScenario } from '../../bench/engine/run/run.ts';
import { runSuite } from '../../bench/engine/run/suite.ts';
import { capabilitiesNeeded } from '../../bench/engine/target.ts';
import { readScenario } from '../../bench/scenarios/scenario.ts';
import { systemClock } from '../../lib/clock.ts';
import { ConfigError, reasonOf } from '../../lib/errors.ts';
import { assertFile } from '../../lib/files.ts';
import { table } from '../../lib/text.ts';
import { trustAuthorityIn } from '../shared/authority.ts';
import { shareGlyphs } from '../shared/glyph-cache.ts';
import { remark, say } from '../shared/output.ts';
import { assertOut, assertReports, finishRun } from '../shared/report-files.ts';
import { adminTokenOf, boxTokenOf, secretFrom } from '../shared/secrets.ts';
import { exitNow, StopSignal } from '../shared/stop-signal.ts';
import { readChecked } from './bench-check.ts';
import { anySeed, LIBRARY, scenariosIn, type TargetOptions, targetOf } from './bench-target.ts';

export interface BenchOptions extends RunOptions {
  target?: string;
  gateway?: string;
  ca?: string;
  box: string[];
  boxes?: number;
  transport?: string | undefined;
  dialect?: string;
  probe?: string;
  panel?: string;
  junit?: string;
  tap?: string;
  json?: string;
  gif?: string;
  report?: string;
  seed?: number;
  /** Variables as NAME=VALUE. */
  set: string[];
  updateGoldens?: boolean;
  username?: string;
  passwordFile?: string;
  account?: string;
  bank?: string;
  holder?: string;
  adminTokenFile?: string;
  boxTokenFile?: string;
}

/** Which scenarios run, how often, and what fails the run. */
interface RunOptions {
  grep?: RegExp;
  shard?: Shard;
  repeat?: number;
  retries?: number;
  jobs?: number;
  failFast?: boolean;
  failOnSkip?: boolean;
}

/**
 * Runs `paybox bench run`. The exit code is 0 when nothing failed, 1 when something failed, 3 when a precondition was
 * missing.
 */
export async function run(names: readonly string[], options: BenchOptions): Promise<void> {
  shareGlyphs();
  trustAuthorityIn(options);
  const scenarios = await readChecked(names, options);
  const { grep, shard, repeat = 1, retries = 0, jobs = 1, failFast = false, failOnSkip = false } = options;
  const seed = options.seed ?? anySeed();
  const entries = chosen(scenarios, { grep, shard, repeat, seed });
  if (entries.length === 0 && shard === undefined) {
    throw new ConfigError(`--grep ${grep?.source}: matches no file and no name of the scenarios`, 'leave it out');
  }
  if (shard !== undefined && entries.length === 0) {
    const { number, of } = shard;
    remark(`shard ${number}/${of} is empty: its scenarios are in the other parts`);
  }
  await assertReports(options);
  const { json, gif } = options;
  for (const [option, file] of Object.entries({ json, gif }))
    if (file !== undefined) await assertOut(`--${option}`, file);
  const secrets = withSecrets(options);
  const { name: target } = targetOf(secrets, seed);
  if (jobs > 1 && target === 'at') {
    throw new ConfigError('--jobs belongs to --target emulated and process: scenarios would share a running box');
  }
  const signal = new StopSignal().aborting();
  const progress = progressOn({ out: process.stdout, err: process.stderr }, { target, seed });
  const startedAtMs = systemClock.wallMs();
  let current = 0;
  const results = await runSuite(
    entries,
    (entry, { number, retry, signal }) => {
      const kind = targetOf({ ...secrets, logs: logsOf(number, retry) }, entry.seed);
      const updateGoldens = options.updateGoldens === true;
      const onStep = (title: string) => number === current && progress.step(title);
      const film = options.report !== undefined || options.gif !== undefined;
      return runScenario(entry.scenario, kind, { seed: entry.seed, updateGoldens, signal, onStep, film });
    },
    {
      target,
      jobs,
      retries,
      failFast,
      signal,
      onBegin: ({ scenario }, number) => {
        current = number;
        progress.begin(scenario.name, number, entries.length);
      },
      onEnd: (result) => progress.end(result),
    },
  );
  const about = { target, seed, startedAtMs };
  const files = [
    { kind: 'json', file: options.json, content: () => jsonOf(results, about) },
    {
      kind: 'gif',
      file: options.gif,
      content: async () => (await import('../../bench/engine/reports/gif.ts')).gifOf(results),
    },
  ];
  const page = () => pageOf(results, about);
  await finishRun(results, options, { ...about, progress, isInterrupted: signal.aborted, failOnSkip, page, files });
  await tellGitHub(results, about);
  // A request to a gateway that hangs would keep the program running.
  if (signal.aborted) exitNow(Number(process.exitCode));
}

/** Returns the folder for logs of a run's programs, below the report's folder. */
function logsOf(number: number, retry: number): string {
  if (number === 1 && retry === 0) return 'logs';
  return join('logs', retry === 0 ? `${number}` : `${number}-retry-${retry}`);
}

/** Marks lines in the pull request and adds to the job's summary, if GitHub Actions runs this. */
async function tellGitHub(results: readonly Judged[], about: { target: string; seed: number }): Promise<void> {
  const { GITHUB_ACTIONS, GITHUB_WORKSPACE = process.cwd(), GITHUB_STEP_SUMMARY = '' } = process.env;
  if (GITHUB_ACTIONS === 'true') process.stderr.write(annotationsOf(results, GITHUB_WORKSPACE));
  if (GITHUB_STEP_SUMMARY === '') return;
  try {
    assertFile(GITHUB_STEP_SUMMARY);
    await appendFile(GITHUB_STEP_SUMMARY, summaryOf(results, about));
  } catch (error) {
    remark(`paybox: GITHUB_STEP_SUMMARY cannot be written: ${reasonOf(error)}`);
  }
}

/** Runs `paybox bench list`: lists the scenarios shipped with the program. */
export async function list(options: { json?: boolean }): Promise<void> {
  const library = [...(await scenariosIn(LIBRARY))];
  const rows = await Promise.all(
    library.map(async ([scenario, path]) => {
      const read = await readScenario(path);
      const { name, about = '', boxes } = read;
      return { scenario, name, about, boxes, needs: [...capabilitiesNeeded(read)] };
    }),
  );
  if (options.json === true) for (const row of rows) say(JSON.stringify(row));
  else say(table(rows.map((it) => [it.scenario, it.name])));
}

function withSecrets(options: BenchOptions): TargetOptions {
  const { passwordFile } = options;
  const password = passwordFile === undefined ? undefined : secretFrom('--password-file', passwordFile);
  return { ...options, password, adminToken: adminTokenOf(options), boxToken: boxTokenOf(options) };
}
