/** All scripts that pack something share this file: programs of Debian, and the time inside packages. */
import { spawnSync } from 'node:child_process';
import { resolve } from 'node:path';

const ROOT = resolve(import.meta.dirname, '..');
const STDOUT_MAX_BYTES = 64 * 1024 * 1024;

/** Debian's architecture names → targets of a bundle. */
export const TARGETS_OF_DEBIAN = { arm64: 'linux-arm64', amd64: 'linux-x64' } as const;
export type Architecture = keyof typeof TARGETS_OF_DEBIAN;

export function isArchitecture(name: string | undefined): name is Architecture {
  return name !== undefined && Object.hasOwn(TARGETS_OF_DEBIAN, name);
}

/** Returns seconds since 1970 for times in packages: SOURCE_DATE_EPOCH, else the newest commit. */
export function sourceDateEpoch(): number {
  const given = process.env.SOURCE_DATE_EPOCH;
  if (given !== undefined) return Number(given);
  return Number(runTool('git', ['-C', ROOT, 'log', '-1', '--format=%ct']));
}

/**
 * Runs a program to its end and returns its output, without the line end.
 * @throws if it is missing or fails, with its error output.
 */
export function runTool(command: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): string {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    env: { ...process.env, ...env },
    encoding: 'utf8',
    maxBuffer: STDOUT_MAX_BYTES,
  });
  if (error !== undefined) throw new Error(`${command} is needed: ${error.message}`);
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} failed: ${stderr}`);
  return stdout.trim();
}
