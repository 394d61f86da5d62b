import { randomInt } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { argumentsOf } from '../../scripts/arguments.ts';
import shareAmongPrograms from '../support/shared.setup.ts';
import { chaos } from './chaos.ts';
import { cluster } from './cluster.ts';
import { dialect } from './dialect.ts';
import { flood } from './flood.ts';
import { fuzz } from './fuzz.ts';
import { kill } from './kill.ts';
import { mutants } from './mutants.ts';
import { Progress } from './progress.ts';
import { properties } from './properties.ts';
import { simulation, twin } from './simulation.ts';
import type { Soak, SoakResult } from './soak.ts';
import { sources } from './sources.ts';

const SOAKS: readonly Soak[] = [
  kill,
  dialect,
  sources,
  chaos,
  cluster,
  twin,
  simulation,
  flood,
  fuzz,
  mutants,
  properties,
];
const INTERRUPTED = 130;
const SEED_MIN = 1_000;
const SEED_MAX = 1_000_000_000;

const USAGE = 'usage: npm run soak -- [--only NAME…] [--runs N] [--seed S] [--lanes N] [--json FILE]';

const { values, positionals } = argumentsOf(USAGE, {
  options: {
    help: { type: 'boolean', default: false },
    only: { type: 'boolean', default: false },
    runs: { type: 'string' },
    // New seeds for each soak; the tests always use the same ones.
    seed: { type: 'string', default: `${randomInt(SEED_MIN, SEED_MAX)}` },
    lanes: { type: 'string', default: `${availableParallelism()}` },
    json: { type: 'string' },
  },
  allowPositionals: true,
});
const chosen = values.only ? SOAKS.filter(({ name }) => positionals.includes(name)) : SOAKS;
const numbers = [values.runs ?? '1', values.seed, values.lanes];
if (
  values.help ||
  chosen.length !== (values.only ? positionals.length : SOAKS.length) ||
  numbers.some((it) => !/^[1-9]\d*$/.test(it))
) {
  const names = SOAKS.map(({ name, amount, unit }) => `${name} (${amount} ${unit})`).join(', ');
  (values.help ? process.stdout : process.stderr).write(`${USAGE}
names: ${names}
`);
  process.exit(values.help ? 0 : 2);
}

const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    if (stop.signal.aborted) process.exit(INTERRUPTED);
    stop.abort();
    process.stderr.write('\nending what is under way; once more to leave at once\n');
  });
}

const endShared = await shareAmongPrograms();
const results: { name: string; seconds: number; result: SoakResult }[] = [];
for (const soak of chosen) {
  if (stop.signal.aborted) break;
  const amount = values.runs === undefined ? soak.amount : Number(values.runs);
  const progress = new Progress(process.stderr, soak.name, amount, soak.unit);
  const startedMs = performance.now();
  const result = await soak.run({
    amount,
    firstSeed: Number(values.seed),
    lanes: Number(values.lanes),
    signal: stop.signal,
    progress: (done, text) => progress.show(done, text),
  });
  progress.end();
  results.push({ name: soak.name, seconds: Math.round((performance.now() - startedMs) / 1000), result });
}

await endShared?.();
for (const { result } of results) if (result.text !== undefined) process.stdout.write(`${result.text}\n\n`);
process.stdout.write(`${table()}\nseed ${values.seed}\n`);
const failures = results.flatMap(({ result }) => result.failures);
for (const failure of failures) process.stdout.write(`\nFAILED ${failure}\n`);
if (values.json !== undefined) await writeFile(values.json, `${JSON.stringify(results, null, 2)}\n`);
process.exitCode = failures.length > 0 ? 1 : stop.signal.aborted ? INTERRUPTED : 0;

function table(): string {
  const rows = results.flatMap(({ name, seconds, result }) => [
    ...Object.entries(result.figures).map(([what, figure]) => [name, what, `${figure}`]),
    [name, 'seconds', `${seconds}`],
    [name, 'failures', `${result.failures.length}`],
  ]);
  const widths = [0, 1].map((column) => Math.max(0, ...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')).join('\n');
}
