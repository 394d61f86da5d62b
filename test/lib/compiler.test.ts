import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';

const MODULE = join(import.meta.dirname, '../../src/lib/compiler.js');
const folder = mkdtempSync(join(tmpdir(), 'paybox-compiler-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Whether V8 has made a loop of this program fast. */
function optimizes(command: string, after: string, env: NodeJS.ProcessEnv): boolean {
  const code = `
    import { optimizeHotCode, saveMemory } from ${JSON.stringify(MODULE)};
    saveMemory(${JSON.stringify(command)});
    ${after}
    function hot(sum) { for (let n = 0; n < 1e6; n += 1) sum = (sum * 31 + n) | 0; return sum; }
    for (let sum = 0, n = 0; n < 30; n += 1) sum = hot(sum);
  `;
  const { NODE_COMPILE_CACHE, CACHE_DIRECTORY, ...rest } = process.env;
  const args = ['--no-concurrent-recompilation', '--trace-opt', '--input-type=module', '-e', code];
  const { status, stdout } = spawnSync(process.execPath, args, { env: { ...rest, ...env }, encoding: 'utf8' });
  expect(status).toBe(0);
  return /completed (optimizing|compiling).*\bhot\b/.test(stdout);
}

describe('the compilers of hot code', () => {
  const own = { NODE_COMPILE_CACHE: folder, CACHE_DIRECTORY: folder };
  it.each([
    ['work for a gateway', 'gateway', '', {}, true],
    ['are left out for an agent', 'agent', '', {}, false],
    ['work for an agent that paints', 'agent', 'optimizeHotCode();', {}, true],
    ['work where other programs use the same kept code', 'agent', '', { NODE_COMPILE_CACHE: folder }, true],
    ['are left out in a service with a folder of its own', 'agent', '', own, false],
  ])('%s', (_, command, after, env, expected) => {
    expect(optimizes(command, after, env)).toBe(expected);
  });
});
