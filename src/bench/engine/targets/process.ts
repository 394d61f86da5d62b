import { type ChildProcess, spawn } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { systemClock, withDeadline } from '../../../lib/clock.ts';
import { MissingPeerError } from '../../../lib/errors.ts';
import { assertFile } from '../../../lib/files.ts';
import type { TargetKind } from '../target.ts';
import { realTime } from '../test-time.ts';
import { makeWorkFolder } from '../work-folder.ts';
import {
  dialectOf,
  type ManagedTargetOptions,
  managedCapabilities,
  openManagedTarget,
  type Part,
  type Starter,
} from './managed.ts';

const START_TIMEOUT_MS = 30_000;
const STOP_TIMEOUT_MS = 5_000;
const LOOK_MS = 10;
const TOLD_CHARS_MAX = 2_000;

export interface ProcessOptions extends Omit<ManagedTargetOptions, 'name'> {
  /** The `paybox` program with its first arguments, for example `['/usr/bin/paybox']`. */
  program: readonly [string, ...string[]];
  /** The folder for the programs' logs; undefined discards them. */
  logDir?: string | undefined;
}

/** Returns a target whose gateway and boxes are separate programs, as on devices, in real time. */
export function processTarget(options: ProcessOptions): TargetKind {
  return {
    name: 'process',
    dialect: dialectOf(options.transport),
    capabilities: new Set([...managedCapabilities(options), 'kill programs']),
    open: async (need) => {
      const folder = await makeWorkFolder('bench-files');
      if (options.logDir !== undefined) await mkdir(options.logDir, { recursive: true });
      const forget = () => rm(folder, { recursive: true, force: true });
      try {
        const target = await openManagedTarget(need, processStarter(folder, options), { ...options, name: 'process' });
        return { ...target, close: (withinMs) => target.close(withinMs).finally(forget) };
      } catch (error) {
        await forget();
        throw error;
      }
    },
  };
}

/** Returns a starter that runs parts as programs with their files in `folder`. */
export function processStarter(
  folder: string,
  { program, logDir }: Pick<ProcessOptions, 'program' | 'logDir'>,
): Starter {
  let count = 0;
  const start = async (
    command: 'gateway' | 'agent',
    config: object,
    name: string,
    signal = new AbortController().signal,
  ): Promise<Part> => {
    count += 1;
    const numbered = `${name}-${count}`;
    const file = join(folder, `${numbered}.yaml`);
    const ready = join(folder, `${numbered}.ready.json`);
    // JSON is valid YAML. The file has mode 600, because it contains secrets.
    await writeFile(file, JSON.stringify(config), { mode: 0o600 });
    signal.throwIfAborted();
    const [path, ...first] = program;
    const args = [...first, command, '--config', file, '--ready-file', ready];
    // With an IPC channel the program ends when the bench ends, even when the bench is killed.
    const child = spawn(path, args, { stdio: ['ignore', 'ignore', 'pipe', 'ipc'] });
    const told = keepErrors(child, logDir === undefined ? undefined : join(logDir, `${numbered}.log`));
    const ended = new Promise<void>((resolve) => {
      child.once('exit', () => resolve());
      child.once('error', () => resolve());
    });
    const end: Part['end'] = async (how, withinMs = STOP_TIMEOUT_MS) => {
      child.kill(how === 'killed' ? 'SIGKILL' : 'SIGTERM');
      const isOver = ended.then(() => true);
      if ((await withDeadline(systemClock, withinMs, isOver)) === undefined) child.kill('SIGKILL');
      await ended;
    };
    if (await isReady(ready, child, signal)) return { end };
    await end('killed');
    signal.throwIfAborted();
    throw new MissingPeerError(`paybox ${command} did not start: ${told() || 'it printed nothing'}`, 'see its log');
  };
  return {
    time: realTime,
    gateway: (config, signal) => start('gateway', config, 'gateway', signal),
    agent: (config, terminalCode, signal) => start('agent', config, terminalCode, signal),
  };
}

/** Returns a function that gives the end of a program's standard error. It also writes all of it to `file` if given. */
function keepErrors({ stderr }: ChildProcess, file: string | undefined): () => string {
  let told = '';
  if (file !== undefined) assertFile(file);
  const out = file === undefined ? undefined : createWriteStream(file);
  stderr?.on('data', (chunk: Buffer) => {
    told = `${told}${chunk}`.slice(-TOLD_CHARS_MAX);
    out?.write(chunk);
  });
  stderr?.on('end', () => out?.end());
  return () => told.trim();
}

async function isReady(file: string, child: ChildProcess, signal: AbortSignal): Promise<boolean> {
  const endMs = systemClock.monotonicMs() + START_TIMEOUT_MS;
  const isStarting = () => child.exitCode === null && child.signalCode === null && !signal.aborted;
  while (systemClock.monotonicMs() < endMs && isStarting()) {
    const text = await readFile(file, 'utf8').catch(() => '');
    if (text !== '') return true;
    await systemClock.sleep(LOOK_MS);
  }
  return false;
}
