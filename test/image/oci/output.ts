import { spawnSync } from 'node:child_process';

const OUTPUT_BYTES_MAX = 64 * 1024 * 1024;

/** Runs a program to its end and returns what it printed. Throws what it complained of, if it fails. */
export function outputOf(command: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): string {
  const all = { ...process.env, ...env };
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    env: all,
    encoding: 'utf8',
    maxBuffer: OUTPUT_BYTES_MAX,
  });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${error?.message ?? `${stdout}${stderr}`}`);
  return stdout;
}
