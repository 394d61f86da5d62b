import { spawnSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { reasonOf } from '../../src/lib/errors.ts';
import { type Fixture, NODE, ROOT, withFixture } from './fixture.ts';
import { type Benchmark, percentile, type Row, rowUnder } from './row.ts';

const RUNS = 5;
const DAY = 'test/scenarios/day-in-a-shop.yaml';

/** Durations of one scenario, of all that are shipped, and of the judges of our own gateway and agent. */
export const bench: Benchmark = {
  name: 'bench',
  run: (progress, leaveOut) =>
    withFixture(async (fixture) => {
      const { whole, scenario, bare } = await happyPath(fixture, progress);
      const happy = { name: 'happy-path', value: scenario / 1_000 };
      const timed = async (name: string, limitSeconds: number, args: readonly string[]): Promise<Row[]> => {
        progress(name);
        try {
          return [rowUnder(name, 's', (await runMs(fixture, args)) / 1_000, happy, limitSeconds)];
        } catch (error) {
          leaveOut(`${name}: ${reasonOf(error)}`);
          return [];
        }
      };
      const library = globSync('test/scenarios/*.yaml', { cwd: ROOT }).filter((file) => file !== DAY);
      const node = { name: 'bare Node start', value: bare };
      return [
        rowUnder('bench run happy-path, p50', 'ms', scenario, node, 600),
        rowUnder('bench run happy-path, command included, p50', 'ms', whole, node, 1_200),
        ...(await timed('bench run, all shipped scenarios but the day', 40, ['bench', 'run', ...library])),
        ...(await timed('bench run day-in-a-shop, 1,000 orders', 40, ['bench', 'run', DAY])),
        // The limits are 1.7 times the processor time of a run, because a judge hardly waits for anything else.
        ...(await timed('judge service', 10, ['judge', 'service', '--strict', '--json'])),
        ...(await timed('judge box', 20, ['judge', 'box', '--strict', '--json'])),
      ];
    }),
};

async function happyPath(fixture: Fixture, progress: (text: string) => void) {
  const folder = await fixture.folder();
  const took: { whole: number; scenario: number; bare: number }[] = [];
  // The first run compiles the program and draws the glyphs for those that follow.
  for (let n = 0; n <= RUNS; n += 1) {
    progress(`happy-path ${n}/${RUNS}`);
    const file = join(folder, `${n}.json`);
    const whole = await runMs(fixture, ['bench', 'run', 'happy-path', '--json', file]);
    const { scenarios } = JSON.parse(await readFile(file, 'utf8')) as { scenarios: [{ tookMs: number }] };
    const startedMs = performance.now();
    spawnSync(NODE, ['-e', '0']);
    if (n > 0) took.push({ whole, scenario: scenarios[0].tookMs, bare: performance.now() - startedMs });
  }
  const middle = (name: 'whole' | 'scenario' | 'bare') =>
    percentile(
      took.map((it) => it[name]),
      0.5,
    );
  return { whole: middle('whole'), scenario: middle('scenario'), bare: middle('bare') };
}

/** Until the program ends. Throws when it does not end with 0. */
async function runMs(fixture: Fixture, args: readonly string[]): Promise<number> {
  const startedMs = performance.now();
  const code = await fixture.payboxToEnd(args);
  if (code !== 0) throw new Error(`paybox ${args.slice(0, 3).join(' ')} ended with ${code}`);
  return performance.now() - startedMs;
}

/** A rig of `bench serve`: opened, and reset for the next test. */
export const rig: Benchmark = {
  name: 'rig',
  run: (progress) =>
    withFixture(async (fixture) => {
      const folder = await fixture.folder();
      const { ready } = await fixture.paybox<{ url: string }>(folder, ['bench', 'serve', '--port', '0']);
      const rows: Row[] = [];
      for (const target of ['emulated', 'process']) {
        const opened: number[] = [];
        const reset: number[] = [];
        const status: number[] = [];
        for (let n = 0; n <= RUNS; n += 1) {
          progress(`rig of target ${target} ${n}/${RUNS}`);
          const open = await asked(`${ready.url}/rigs`, 'POST', { target });
          const { links } = open.json as { links: { self: string } };
          const again = await asked(`${ready.url}${links.self}/reset`, 'POST');
          const look = await asked(`${ready.url}${links.self}/boxes/1/status`, 'GET');
          await asked(`${ready.url}${links.self}`, 'DELETE');
          if (n === 0) continue;
          opened.push(open.tookMs);
          reset.push(again.tookMs);
          status.push(look.tookMs);
        }
        const against = { name: 'a look at its box', value: percentile(status, 0.5) };
        rows.push(rowUnder(`rig of target ${target}, p50`, 'ms', percentile(opened, 0.5), against, 500));
        rows.push(rowUnder(`its reset, p50`, 'ms', percentile(reset, 0.5), against, 500));
      }
      return rows;
    }),
};

async function asked(url: string, method: string, body?: object): Promise<{ json: unknown; tookMs: number }> {
  const startedMs = performance.now();
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(url, { method, ...(body && { headers, body: JSON.stringify(body) }) });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${url}: ${response.status} ${text}`);
  return { json: text === '' ? undefined : (JSON.parse(text) as unknown), tookMs: performance.now() - startedMs };
}
