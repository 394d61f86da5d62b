import { spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { expect, it } from 'vitest';
import { temporaryFolder } from './net.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const VITEST = resolve(ROOT, 'node_modules/vitest/vitest.mjs');
const REPORTER = resolve(import.meta.dirname, 'closing-line.ts');

/** Runs tests, of which so many fail at the first try, as `npm test` does; its exit code and the end of its output. */
async function runWith(failingOnce: number): Promise<{ code: number | null; lines: string[] }> {
  const folder = await temporaryFolder();
  const config = join(folder, 'vitest.config.mjs');
  const test = { root: folder, globals: true, retry: 1, reporters: [REPORTER] };
  await writeFile(config, `export default ${JSON.stringify({ test })};\n`);
  const source = `
    let tries = 0;
    it.for([...Array(${failingOnce}).keys()])('early %d', (nth) => {
      tries += 1;
      if (tries <= 2 * nth + 1) throw new Error('too early\\nby far');
    });
    it('always', () => undefined);
    it.skip('never', () => undefined);
  `;
  await writeFile(join(folder, 'some.test.mjs'), source);
  const { VITEST: _this, ...env } = process.env;
  const args = [VITEST, 'run', '--config', config];
  const { status, stdout } = spawnSync(process.execPath, args, { cwd: folder, env, encoding: 'utf8' });
  return { code: status, lines: stdout.trimEnd().split('\n') };
}

const early = (nth: number) => `  some.test.mjs > early ${nth}: too early`;

it.each([
  [0, 0, '1 passed, 0 failed, 1 skipped'],
  [3, 0, '4 passed, 0 failed, 1 skipped'],
  [4, 1, '1 passed, 4 failed, 1 skipped'],
])('%d second tries end a run with exit code %d and are named', async (count, code, closing) => {
  const run = await runWith(count);
  const named = [...Array(count).keys()].map(early);
  const last = ['skipped: never', `passed at the second try: ${count}`, ...named, closing];
  expect({ code: run.code, lines: run.lines.slice(-last.length) }).toEqual({ code, lines: last });
});
