import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import { eventually, temporaryFolder } from './net.ts';
import { cli } from './program-code.ts';

export const CLI = cli();
const STOP_TIMEOUT_MS = 30_000;
/** For the last words of a program that has ended; its pipes stay open while a child of it has them. */
const LAST_WORDS_MS = 2_000;
/** For a program, or a box, to be ready: a second, but not on a machine that has much else to do. */
export const START_MS = 120_000;

/** Sends a signal to a process, if it still lives. */
export function signalTo(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended.
  }
}

/** A child process; its output is kept for the message of a failing test. */
export interface Running {
  child: ChildProcess;
  output(): string;
  /** Sends the signal and waits for the end. Returns the exit code or the signal's name. */
  stop(signal?: NodeJS.Signals): Promise<number | string>;
  /** Settles with the same once it has ended by itself and all that it said is read. */
  ended: Promise<number | string>;
}

/** Starts a program; it is killed by its own id at the end of the test. */
export const run: typeof start = (...of) => {
  const running = start(...of);
  onTestFinished(async () => {
    await running.stop('SIGKILL');
  });
  return running;
};

/** Starts a program, also outside a test; the caller stops it. */
export function start(command: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): Running {
  const child = spawn(command, args, { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  const chunks: string[] = [];
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk: Buffer) => chunks.push(String(chunk)));
  const closed = new Promise<void>((resolve) => {
    child.once('close', () => resolve());
  });
  const ended = new Promise<number | string>((resolve) => {
    child.once('exit', async (code, signal) => {
      const late = new AbortController();
      await Promise.race([closed, delay(LAST_WORDS_MS, undefined, { signal: late.signal }).catch(() => undefined)]);
      late.abort();
      resolve(code ?? signal ?? 'unknown');
    });
    child.once('error', (error) => {
      chunks.push(String(error));
      resolve('not started');
    });
  });
  const stop = async (signal: NodeJS.Signals = 'SIGTERM') => {
    if (child.exitCode === null && child.signalCode === null) child.kill(signal);
    const late = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS);
    const result = await ended;
    clearTimeout(late);
    return result;
  };
  return { child, output: () => chunks.join(''), stop, ended };
}

/** Starts `paybox …`, as a user would. */
export function paybox(...args: string[]): Running {
  return run(cli(), args);
}

/** Runs `paybox …` to its end. */
export async function payboxToEnd(...args: string[]): Promise<{ code: number | string; output: string }> {
  const running = paybox(...args);
  await once(running.child, 'close');
  return { code: running.child.exitCode ?? 'killed', output: running.output() };
}

/** Waits for a ready file and returns its content. Fails with the program's output when the program ends first. */
export async function readyFile<T>(file: string, running: Running): Promise<T> {
  return eventually(
    `ready file ${file}`,
    async () => {
      if (running.child.exitCode !== null) throw new Error(`ended before it was ready: ${running.output()}`);
      const text = await readFile(file, 'utf8').catch(() => undefined);
      return text === undefined ? undefined : (JSON.parse(text) as T);
    },
    START_MS,
  );
}

export interface Configured<At> {
  running: Running;
  folder: string;
  /** Its configuration. */
  file: string;
  /** What its ready file says. */
  at: At;
  /** The same once more, after its end. */
  again(): Promise<Configured<At>>;
}

/**
 * Starts `paybox gateway` or `paybox agent` with this configuration, and waits until it is ready. Outside a test the caller gives the
 * folder, and `launch`, which starts `paybox …`.
 */
export async function startConfigured<At>(
  command: 'gateway' | 'agent',
  config: object,
  given?: string,
  launch: (...args: string[]) => Running = paybox,
): Promise<Configured<At>> {
  const folder = given ?? (await temporaryFolder());
  const [file, ready] = [join(folder, `${command}.yaml`), join(folder, `${command}.json`)];
  // As an admin would: some configurations have secrets.
  await writeFile(file, JSON.stringify(config), { mode: 0o600 });
  const again = async () => {
    const running = launch(command, '--config', file, '--ready-file', ready);
    // The file of an earlier run is gone by then.
    const isReady = () => running.child.exitCode !== null || running.output().includes('"event":"ready"');
    await eventually(`${command} to be ready`, isReady, START_MS);
    return { running, folder, file, at: await readyFile<At>(ready, running), again };
  };
  return again();
}

export type GatewayAt = Record<'baseUrl' | 'consoleUrl' | 'mqttUrl', string>;
export type AgentAt = Record<'boxUrl', string>;

/** Ids of running programs that were started with a file of this folder. */
export async function programsIn(folder: string): Promise<number[]> {
  const pids = (await readdir('/proc')).map(Number).filter((pid) => pid > 0);
  const lines = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')));
  return pids.filter((_pid, index) => lines[index]?.includes(`--config\0${folder}`));
}
