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
const ARGS = [
  VITEST,
  'run',
  '--config',
  'test/vitest.config.ts',
  'test/cluster/cluster.test.ts',
  '-t',
  'whatever dies',
];
/** Runs that share one cluster. */
const RUNS_PER_WORLD = 20;
const FAILURES_MAX = 5;

const counts = z.record(z.string(), z.number());

/** A cluster whose members, broker nodes and database are killed, stopped and cut off, over each broker in turn, while it sells; see test/cluster. */
export const cluster: Soak = {
  name: 'cluster',
  unit: 'runs',
  amount: 5_000,
  run: async ({ amount, firstSeed, signal, progress }) => {
    const failures: string[] = [];
    const figures: Record<string, number> = {};
    for (let done = 0; done < amount && failures.length < FAILURES_MAX && !signal.aborted; done += RUNS_PER_WORLD) {
      const runs = Math.min(RUNS_PER_WORLD, amount - done);
      const folder = await mkdtemp(join(tmpdir(), 'paybox-soak-'));
      const file = join(folder, 'figures');
      const seed = firstSeed + done;
      const broker = BROKERS[(done / RUNS_PER_WORLD) % BROKERS.length] ?? 'mosquitto';
      const from = { PAYBOX_CLUSTER_SEED: `${seed}`, PAYBOX_CLUSTER_RUNS: `${runs}`, PAYBOX_CLUSTER_BROKER: broker };
      const env = { ...process.env, ...from, PAYBOX_CLUSTER_BOXES: '60', PAYBOX_CLUSTER_FIGURES: file };
      const child = spawn(process.execPath, ARGS, { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'pipe'] });
      let output = '';
      for (const stream of [child.stdout, child.stderr]) {
        stream.on('data', (chunk: Buffer) => {
          output += String(chunk);
        });
      }
      const [code] = (await once(child, 'close')) as [number | null];
      const report = await readFile(file, 'utf8').catch(() => '{}');
      await rm(folder, { recursive: true, force: true });
      for (const [name, figure] of Object.entries(counts.parse(JSON.parse(report)))) {
        const isMost = name.startsWith('longest');
        figures[name] = isMost ? Math.max(figures[name] ?? 0, figure) : (figures[name] ?? 0) + figure;
      }
      if (code !== 0)
        failures.push(
          `PAYBOX_CLUSTER_SEED=${seed} PAYBOX_CLUSTER_RUNS=${runs} PAYBOX_CLUSTER_BROKER=${broker}\n${output}`,
        );
      progress(done + runs, `${figures.payments ?? 0} payments, ${failures.length} failures`);
    }
    return { figures, failures };
  },
};
