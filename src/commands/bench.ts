import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { type Probe, probeOf } from '../bench/probe.ts';
import { junitOf } from '../bench/reports/junit.ts';
import { pageOf } from '../bench/reports/page.ts';
import { progressOn } from '../bench/reports/progress.ts';
import { tapOf } from '../bench/reports/tap.ts';
import { type Result, runScenario } from '../bench/run.ts';
import { readScenario, type Scenario } from '../bench/scenario.ts';
import { needsOf, type TargetKind } from '../bench/target.ts';
import { atTarget } from '../bench/targets/at.ts';
import { processTarget } from '../bench/targets/process.ts';
import { systemClock } from '../lib/clock.ts';
import { ConfigError, reasonOf } from '../lib/errors.ts';
import { createLogger, type Logger } from '../lib/log.ts';
import { systemRandom } from '../lib/random.ts';
import { seededRandom } from '../lib/seeded.ts';
import { isExposed } from '../lib/tls.ts';
import { emulatedTarget } from './bench-emulated.ts';
import { fileLog, StopSignal } from './daemon.ts';
import { table } from './print.ts';
import { secretFrom } from './secrets.ts';

export interface BenchOptions {
  target?: string;
  gateway?: string;
  box: string[];
  boxes?: number;
  transport: string;
  probe: string;
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
}

/** Scenarios that come with the program. */
const LIBRARY = fileURLToPath(new URL('../../test/scenarios/', import.meta.url));
const SCENARIO_FILE = /\.ya?ml$/;
const SEED_LIMIT = 1_000_000;
const EXIT = { passed: 0, failed: 1, missing: 3, interrupted: 130 } as const;

/** `paybox bench run`: exit code 0 when nothing failed, 1 when something did, 3 when what it needs was not there. */
export async function run(names: readonly string[], options: BenchOptions): Promise<void> {
  const scenarios = await Promise.all(
    names.map(async (name) => withBoxes(await readScenario(await pathOf(name)), options)),
  );
  const seed = options.seed ?? Math.floor(systemRandom.fraction() * SEED_LIMIT);
  if (options.report !== undefined) await makeFolder('--report', options.report);
  const kind = targetOf(options, seed);
  const stop = new StopSignal();
  const ending = new AbortController();
  void stop.received.then((signal) => ending.abort(new Error(`ended by ${signal}`)));
  const progress = progressOn({ out: process.stdout, err: process.stderr }, { target: kind.name, seed });
  const startedAtMs = systemClock.wallMs();
  const results: Result[] = [];
  for (const [index, scenario] of scenarios.entries()) {
    progress.begin(scenario.name, index + 1, scenarios.length);
    try {
      const updateGoldens = options.updateGoldens === true;
      const onStep = (title: string) => progress.step(title);
      const result = await runScenario(scenario, kind, { seed, updateGoldens, signal: ending.signal, onStep });
      progress.end(result);
      results.push(result);
    } catch (error) {
      if (!ending.signal.aborted) throw error;
      process.exitCode = EXIT.interrupted;
      break;
    }
  }
  await writeReports(results, options, startedAtMs);
  const exitCode = process.exitCode === EXIT.interrupted ? EXIT.interrupted : exitCodeOf(results);
  progress.finish(results, exitCode);
  process.exitCode = exitCode;
}

/** `paybox bench list`: the scenarios that come with the program. */
export async function list(options: { json?: boolean }): Promise<void> {
  const scenarios = await Promise.all((await libraryNames()).map((name) => readScenario(join(LIBRARY, name))));
  const rows = scenarios.map((scenario) => {
    const { file, name, about = '', boxes } = scenario;
    return { scenario: file.replace(SCENARIO_FILE, ''), name, about, boxes, needs: [...needsOf(scenario)] };
  });
  if (options.json === true) for (const row of rows) process.stdout.write(`${JSON.stringify(row)}\n`);
  else process.stdout.write(`${table(rows.map((it) => [it.scenario, it.name]))}\n`);
}

async function libraryNames(): Promise<string[]> {
  return (await readdir(LIBRARY)).filter((name) => SCENARIO_FILE.test(name)).sort();
}

/** A path, or the name of a scenario that comes with the program. */
async function pathOf(name: string): Promise<string> {
  if (SCENARIO_FILE.test(name) || name.includes('/')) return resolve(name);
  const names = await libraryNames();
  const found = names.find((file) => file.replace(SCENARIO_FILE, '') === name);
  if (found !== undefined) return join(LIBRARY, found);
  const known = names.map((file) => file.replace(SCENARIO_FILE, '')).join(', ');
  throw new ConfigError(`bench run ${name}: expected a file that ends in .yaml, or one of ${known}`);
}

function withBoxes(scenario: Scenario, { boxes, box }: BenchOptions): Scenario {
  const there = boxes ?? (scenario.boxes < box.length ? box.length : scenario.boxes);
  return { ...scenario, boxes: Math.max(scenario.boxes, there) };
}

function targetOf(options: BenchOptions, seed: number): TargetKind {
  const name = options.target ?? (options.gateway === undefined ? 'emulated' : 'at');
  const probe = probeOf(options.probe);
  const { transport } = options;
  if (transport !== 'mqtt' && transport !== 'http')
    throw new ConfigError(`--transport ${transport}: expected mqtt or http`);
  if (name === 'at') return runningTarget(options, probe);
  if (options.gateway !== undefined || options.box.length > 0) {
    throw new ConfigError(`--gateway and --box belong to --target at, not to ${name}`);
  }
  if (name === 'emulated') {
    const log = options.report === undefined ? noLog() : fileLog(join(options.report, 'bench.log'));
    return emulatedTarget({ transport, probe, log, random: seededRandom(seed) });
  }
  if (name !== 'process') throw new ConfigError(`--target ${name}: expected emulated, process or at`);
  const program = [process.execPath, process.argv[1] ?? ''] as const;
  const logDir = options.report === undefined ? undefined : join(options.report, 'logs');
  return processTarget({ program, transport, probe, random: systemRandom, logDir });
}

function runningTarget(options: BenchOptions, probe: Probe): TargetKind {
  const { gateway, box, passwordFile, adminTokenFile, username, account, bank, holder } = options;
  if (gateway === undefined || !URL.canParse(gateway)) {
    throw new ConfigError('--target at: expected --gateway, the origin of a gateway, as http://127.0.0.1:8800');
  }
  const wrong = box.find((url) => !URL.canParse(url));
  if (wrong !== undefined || box.length === 0) {
    throw new ConfigError(
      `--box ${wrong ?? 'is missing'}: expected the origin of a box's pages, as http://127.0.0.1:8810`,
    );
  }
  const password = passwordFile === undefined ? undefined : secretFrom('--password-file', passwordFile);
  const fromFile = adminTokenFile === undefined ? undefined : secretFrom('--admin-token-file', adminTokenFile);
  const adminToken = fromFile ?? (process.env.PAYBOX_ADMIN_TOKEN || undefined);
  if (adminToken !== undefined && isExposed(gateway)) {
    throw new ConfigError(
      `--gateway ${gateway}: the admin token would be sent where others can read it`,
      'use https://',
    );
  }
  return atTarget({ gateway, boxes: box, username, password, account, bank, holder, adminToken, probe });
}

function noLog(): Logger {
  return createLogger(new Writable({ write: (_line, _encoding, done) => done() }), systemClock, 'json');
}

async function writeReports(results: readonly Result[], options: BenchOptions, startedAtMs: number): Promise<void> {
  const { junit, tap, report } = options;
  if (junit !== undefined) await writeOut('--junit', junit, junitOf(results, { startedAtMs }));
  if (tap !== undefined) await writeOut('--tap', tap, tapOf(results));
  if (report !== undefined) await writeOut('--report', join(report, 'index.html'), pageOf(results, { startedAtMs }));
}

async function writeOut(option: string, file: string, text: string): Promise<void> {
  await makeFolder(option, dirname(file));
  await writeFile(file, text).catch((error: unknown) => {
    throw new ConfigError(`${option} ${file} cannot be written: ${reasonOf(error)}`, 'name a file that may be written');
  });
}

async function makeFolder(option: string, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true }).catch((error: unknown) => {
    throw new ConfigError(
      `${option} ${folder} cannot be made: ${reasonOf(error)}`,
      'name a folder that may be written',
    );
  });
}

function exitCodeOf(results: readonly Result[]): number {
  if (results.some(({ outcome }) => outcome === 'failed')) return EXIT.failed;
  return results.some(({ outcome }) => outcome === 'missing') ? EXIT.missing : EXIT.passed;
}
