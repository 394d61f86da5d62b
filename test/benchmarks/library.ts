import { spawn, spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makePackage } from '../../scripts/package.ts';
import { freePorts } from '../../src/bench/engine/free-ports.ts';
import { packageName } from '../../src/lib/version.ts';
import { ENV, end, type Fixture, NODE, withFixture } from './fixture.ts';
import { type Benchmark, percentile, type Row, rowUnder } from './row.ts';

const STARTS = 7;
const SALES = 10;
const READY_MAX_MS = 700;
const STEP_MAX_MS = 20;

/** Sells in a test's process, and prints what each part took. */
const SCRIPT = `
import { openPaybox } from '${packageName()}';
const took = async (into, work) => { const began = performance.now(); const result = await work(); into.push(performance.now() - began); return result; };
const ready = [], steps = [], looks = [];
const paybox = await took(ready, () => openPaybox());
for (let n = 1; n <= ${SALES}; n += 1) {
  const order = { amount: 1000 * n, content: 'DH' + n };
  await took(steps, () => paybox.push(order));
  await took(steps, () => paybox.expect({ screen: 'payment', text: n + '.000 ₫' }));
  await took(steps, () => paybox.pay(order));
  await took(steps, () => paybox.expect({ state: 'paid', callback: 'delivered' }));
  await took(looks, () => paybox.status());
}
console.log(JSON.stringify({ ready, steps, looks }));
await paybox.close();
`;

interface Sales {
  ready: number[];
  steps: number[];
  looks: number[];
}

/** The npm package where it is installed: the library for tests, and the start of the command. */
export const library: Benchmark = {
  name: 'library',
  run: (progress) =>
    withFixture(async (fixture) => {
      const folder = await installed(fixture, progress);
      await writeFile(join(folder, 'sell.mjs'), SCRIPT);
      const all: Sales = { ready: [], steps: [], looks: [] };
      const bare: number[] = [];
      const up: number[] = [];
      // The first run compiles the program and draws the glyphs for those that follow.
      for (let n = 0; n <= STARTS; n += 1) {
        progress(`library ${n}/${STARTS}`);
        const { status, stdout, stderr } = spawnSync(NODE, ['sell.mjs'], { cwd: folder, encoding: 'utf8' });
        if (status !== 0) throw new Error(stderr);
        const upMs = await startMs(folder);
        const beganMs = performance.now();
        spawnSync(NODE, ['-e', '0']);
        if (n === 0) continue;
        bare.push(performance.now() - beganMs);
        up.push(upMs);
        const sales = JSON.parse(stdout) as Sales;
        for (const name of ['ready', 'steps', 'looks'] as const) all[name].push(...sales[name]);
      }
      return rowsOf(all, up, bare);
    }),
};

async function installed(fixture: Fixture, progress: (text: string) => void): Promise<string> {
  const folder = await fixture.folder();
  progress('library: package and its installation');
  const file = await makePackage(folder, () => undefined);
  await writeFile(join(folder, 'package.json'), '{ "private": true }');
  const quiet = ['--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error'];
  const { status, stderr } = spawnSync('npm', ['install', ...quiet, file], { cwd: folder, encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
  return folder;
}

/** From the start of the installed command until `paybox up` says that all of it answers. */
async function startMs(folder: string): Promise<number> {
  const ports = await freePorts(3);
  const options = ['--http-port', '--mqtt-port', '--box-port'].flatMap((name, index) => [name, `${ports[index]}`]);
  const args = ['up', '--no-open', '--data', join(folder, 'data'), ...options];
  const beganMs = performance.now();
  const child = spawn(NODE, [join(folder, 'node_modules', packageName(), 'bin/paybox.cjs'), ...args], {
    stdio: ['ignore', 'pipe', 'ignore'],
    env: ENV,
  });
  try {
    for await (const chunk of child.stdout) if (String(chunk).includes('paybox is ready')) break;
    return performance.now() - beganMs;
  } finally {
    await end(child);
  }
}

function rowsOf({ ready, steps, looks }: Sales, up: readonly number[], bare: readonly number[]): Row[] {
  const node = { name: 'bare Node start', value: percentile(bare, 0.5) };
  const look = { name: 'a look at its box', value: percentile(looks, 0.5) };
  return [
    rowUnder('library ready in a new process, p50', 'ms', percentile(ready, 0.5), node, READY_MAX_MS),
    rowUnder('library, a step, p50', 'ms', percentile(steps, 0.5), look, STEP_MAX_MS),
    rowUnder('installed package, up to ready, p50', 'ms', percentile(up, 0.5), node, 2_000),
  ];
}
