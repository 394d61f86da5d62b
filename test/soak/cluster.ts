import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { BROKERS } from '../cluster/brokers.ts';
import type { Soak } from './soak.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const VITEST = resolve(ROOT, 'node_modules/vitest/vitest.mjs');
const ARGS = [VITEST, 'run', '--config', 'test/vitest.config.ts', 'test/cluster/kills.long.test.ts'];
/** Runs that share one world; there is one over each broker at a time. */
const RUNS_PER_WORLD = 30;
const FAILURES_MAX = 5;

const counts = z.record(z.string(), z.number());

/** Gateways of one database that are killed, stopped and cut off, with their broker nodes and database, over each broker at once, while they sell; see test/cluster. */
export const cluster: Soak = {
  name: 'cluster',
  unit: 'runs',
  amount: 5_000,
  run: async ({ amount, firstSeed, signal, progress }) => {
    const failures: string[] = [];
    const figures: Record<string, number> = {};
    const step = RUNS_PER_WORLD * BROKERS.length;
    for (let done = 0; done < amount && failures.length < FAILURES_MAX && !signal.aborted; done += step) {
      const each = Math.ceil(Math.min(step, amount - done) / BROKERS.length);
      const folder = await mkdtemp(join(tmpdir(), 'paybox-soak-'));
      const file = join(folder, 'figures');
      const seed = firstSeed + done;
      const runs = { PAYBOX_CLUSTER_SEED: `${seed}`, PAYBOX_CLUSTER_RUNS: `${each}`, PAYBOX_CLUSTER_BOXES: '60' };
      const env = { ...process.env, ...runs, PAYBOX_CLUSTER_FIGURES: file };
      const child = spawn(process.execPath, ARGS, { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'pipe'] });
      let output = '';
      for (const stream of [child.stdout, child.stderr]) {
        stream.on('data', (chunk: Buffer) => {
          output += String(chunk);
        });
      }
      const [code] = (await once(child, 'close')) as [number | null];
      for (const broker of BROKERS) {
        const report = await readFile(`${file}.${broker}`, 'utf8').catch(() => '{}');
        for (const [name, figure] of Object.entries(counts.parse(JSON.parse(report)))) {
          const isMost = name.startsWith('longest');
          figures[name] = isMost ? Math.max(figures[name] ?? 0, figure) : (figures[name] ?? 0) + figure;
        }
      }
      await rm(folder, { recursive: true, force: true });
      if (code !== 0) {
        const failure = `PAYBOX_CLUSTER_SEED=${seed} PAYBOX_CLUSTER_RUNS=${each}\n${output}`;
        failures.push(failure);
        // At once: the rest may take hours.
        process.stderr.write(`\nFAILED ${failure}\n`);
      }
      progress(done + each * BROKERS.length, `${figures.payments ?? 0} payments, ${failures.length} failures`);
    }
    return { figures, failures };
  },
};
