import { spawn, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { ENV, end, Fixture, NODE, pairFiles, ROOT, statusOf } from './fixture.ts';
import { residentMegabytes } from './process.ts';
import { type Benchmark, percentile, type Row, rowUnder } from './row.ts';

const STARTS = 9;
const REST_MS = 3_000;
const START_TIMEOUT_MS = 60_000;

/** One kind of agent: how to start it, and the measurements of its starts. */
interface Kind {
  name: string;
  command: string;
  env: NodeJS.ProcessEnv;
  startsMs: number[];
  megabytes: number[];
}

/**
 * The bundled agent: time from process start to registration, and idle memory. Compared in turns with plain Node and with the agent
 * of the checkout.
 */
export const bundle: Benchmark = {
  name: 'bundle',
  async run(progress) {
    const fixture = new Fixture();
    try {
      const folder = await fixture.folder();
      const built = join(folder, 'bundle');
      progress('bundle: build');
      const args = [join(ROOT, 'scripts/bundle.ts'), '--target', `linux-${process.arch}`, '--out', built];
      const building = spawnSync(NODE, args, { encoding: 'utf8' });
      if (building.status !== 0) throw new Error(building.stderr);
      const files = await pairFiles(folder, { driver: 'png', path: 'screen.png' });
      await fixture.paybox(folder, ['gateway', '--config', files.gatewayFile]);
      const kindOf = (name: string, command: string): Kind => {
        // As its service has it: a folder of its own.
        const cache = join(folder, `cache-${name}`);
        const env = { ...ENV, NODE_COMPILE_CACHE: cache, CACHE_DIRECTORY: cache };
        return { name, command, env, startsMs: [], megabytes: [] };
      };
      const kinds = [
        kindOf('bundle', join(built, 'bin/paybox')),
        kindOf('checkout', join(ROOT, 'src/cli.js')),
      ] as const;
      const bareMs: number[] = [];
      for (let n = 0; n <= STARTS; n += 1) {
        progress(`bundle: start ${n}/${STARTS}`);
        for (const kind of kinds) await measure(kind, files, n > 0);
        const startedMs = performance.now();
        spawnSync(join(built, 'node'), ['-e', '0']);
        if (n > 0) bareMs.push(performance.now() - startedMs);
      }
      return rowsOf(kinds, bareMs);
    } finally {
      await fixture.close();
    }
  },
};

/** One start until the box is registered, then its idle memory. The first start (cold caches) does not count. */
async function measure(kind: Kind, files: { agentFile: string; boxUrl: string }, counts: boolean): Promise<void> {
  const startedMs = performance.now();
  const child = spawn(kind.command, ['agent', '--config', files.agentFile], { stdio: 'ignore', env: kind.env });
  try {
    for (;;) {
      if (
        await statusOf(files.boxUrl).then(
          ({ online }) => online,
          () => false,
        )
      )
        break;
      const late = performance.now() - startedMs > START_TIMEOUT_MS;
      if (child.exitCode !== null || late) throw new Error(`the agent of the ${kind.name} did not register`);
      await delay(2);
    }
    const tookMs = performance.now() - startedMs;
    await delay(REST_MS);
    if (!counts) return;
    kind.startsMs.push(tookMs);
    kind.megabytes.push(await residentMegabytes(child.pid));
  } finally {
    await end(child);
  }
}

function rowsOf([ours, checkout]: readonly [Kind, Kind], bareMs: readonly number[]): Row[] {
  const startMs = percentile(ours.startsMs, 0.5);
  const memory = percentile(ours.megabytes, 0.5);
  const beside = (kind: Kind, values: readonly number[]) => ({ name: kind.name, value: percentile(values, 0.5) });
  return [
    rowUnder(
      'bundle, start to registered, p50',
      'ms',
      startMs,
      { name: 'bare Node start', value: percentile(bareMs, 0.5) },
      1_000,
    ),
    rowUnder('bundle, start to registered, p50', 'ms', startMs, beside(checkout, checkout.startsMs), 1_000),
    rowUnder('bundle, agent memory at rest', 'MB', memory, beside(checkout, checkout.megabytes), 90),
  ];
}
