import { spawn } from 'node:child_process';
import { onTestFinished } from 'vitest';
import { findProgram, PROGRAMS } from './programs.ts';

const TIMEOUT_MS = 20_000;

/** Runs `openssl` to its end with `input`; kills it by its own id when it hangs. */
export async function openssl(
  args: readonly string[],
  input: Uint8Array | string = '',
): Promise<{ code: number | null; out: Buffer; errors: string }> {
  const child = spawn(findProgram(PROGRAMS.openssl) ?? 'openssl', args, { stdio: ['pipe', 'pipe', 'pipe'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  const late = setTimeout(() => child.kill('SIGKILL'), TIMEOUT_MS);
  const out: Buffer[] = [];
  const errors: string[] = [];
  child.stdout.on('data', (chunk: Buffer) => out.push(chunk));
  child.stderr.on('data', (chunk: Buffer) => errors.push(String(chunk)));
  child.stdin.on('error', () => undefined);
  child.stdin.end(input);
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  clearTimeout(late);
  return { code, out: Buffer.concat(out), errors: errors.join('') };
}
