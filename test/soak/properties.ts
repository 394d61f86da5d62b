import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { playSeeds } from './seeds.ts';
import type { Soak } from './soak.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const VITEST = resolve(ROOT, 'node_modules/vitest/vitest.mjs');
const PROJECTS = ['pure', 'in-process', 'in-process-again'].flatMap((name) => ['--project', name]);
const ARGS = [VITEST, 'run', '--config', 'test/vitest.config.ts', ...PROJECTS, '--retry', '0'];

/** Property tests of pure and in-process code, with new values for each seed. */
export const properties: Soak = {
  name: 'properties',
  unit: 'test runs',
  amount: 20,
  run: (options) =>
    playSeeds(options, async (seed) => {
      const env = { ...process.env, PAYBOX_PROPERTY_SEED: `${seed}` };
      const child = spawn(process.execPath, ARGS, { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'ignore'] });
      let output = '';
      child.stdout.on('data', (chunk: Buffer) => {
        output += String(chunk);
      });
      const [code] = (await once(child, 'close')) as [number | null];
      if (code !== 0) throw new Error(`PAYBOX_PROPERTY_SEED=${seed} npm test\n${output}`);
      return { runs: 1 };
    }),
};
