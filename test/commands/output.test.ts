import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { CLI } from '../support/processes.ts';

/** What a shell makes of a line in which `paybox` is the program: its exit code, and what it says of errors. */
async function inShell(line: string): Promise<{ code: unknown; errors: string }> {
  const bash = promisify(execFile)('bash', ['-c', `set -o pipefail; paybox() { ${CLI} "$@"; }; ${line}`]);
  const { code = 0, stderr } = (await bash.catch((error: unknown) => error)) as { code?: unknown; stderr: string };
  return { code, errors: stderr };
}

it('a reader that goes away, as head does, is no error', async () => {
  expect(await inShell('paybox bench list --json | head -1')).toEqual({ code: 0, errors: '' });
});

it('a run whose reader has gone comes to its verdict', async () => {
  const { code, errors } = await inShell('paybox bench run happy-path --seed 1 | true');
  expect(errors).toMatch(/^✓ An order is paid \(.*\n1 passed; target emulated, seed 1\n$/);
  expect(code).toBe(0);
});

it('a full disk under standard output is named, once, and is not done', async () => {
  const errors = 'paybox: standard output cannot be written: ENOSPC: no space left on device, write\n';
  expect(await inShell('paybox bench list --json > /dev/full')).toEqual({ code: 1, errors });
});

it('a run whose report finds no space ends with its marker', async () => {
  const { code, errors } = await inShell('paybox bench run happy-path --seed 1 --junit /dev/full | grep END >&2');
  expect(errors).toContain('PAYBOX-BENCH END passed=1 failed=0 skipped=0 missing=0 exit=2\n');
  expect(errors).toContain('paybox: --junit /dev/full cannot be written: ENOSPC');
  expect(code).toBe(2);
});
