import { writeFileSync } from 'node:fs';
import { argumentsOf } from '../../scripts/arguments.ts';
import { reasonOf } from '../../src/lib/errors.ts';
import { suggestion } from '../../src/lib/suggestion.ts';
import { table } from '../../src/lib/text.ts';
import { bench, rig } from './bench.ts';
import { bundle } from './bundle.ts';
import { credits } from './credits.ts';
import { day } from './day.ts';
import { endurance } from './endurance.ts';
import { frame } from './frame.ts';
import { idle } from './idle.ts';
import { library } from './library.ts';
import { light } from './light.ts';
import { load } from './load.ts';
import { payment, push } from './loop.ts';
import { memory, up } from './process.ts';
import type { Benchmark, Row } from './row.ts';
import { scale } from './scale.ts';
import { scan } from './scan.ts';
import { wire } from './wire.ts';

const BENCHMARKS: readonly Benchmark[] = [
  up,
  push,
  payment,
  credits,
  load,
  light,
  scale,
  idle,
  endurance,
  day,
  memory,
  bundle,
  library,
  frame,
  wire,
  scan,
  rig,
  bench,
];

const USAGE = 'usage: npm run bench -- [--only NAME…] [--json FILE]';
const { values, positionals } = argumentsOf(USAGE, {
  options: { help: { type: 'boolean' }, only: { type: 'boolean' }, json: { type: 'string' } },
  allowPositionals: true,
});
const unknown = positionals.find((name) => !BENCHMARKS.some((benchmark) => benchmark.name === name));
if (values.help === true) {
  process.stdout.write(`${USAGE}\nnames: ${names()}\n`);
  process.exit(0);
}
if (unknown !== undefined || (positionals.length > 0 && values.only !== true)) {
  const known = BENCHMARKS.map((benchmark) => benchmark.name);
  const problem = unknown === undefined ? '' : `no benchmark ${unknown}${suggestion(unknown, known)}\n`;
  process.stderr.write(`${problem}${USAGE}\nnames: ${names()}\n`);
  process.exit(2);
}

const rows: Row[] = [];
const leftOut: string[] = [];
const failed: string[] = [];
// What no benchmark has caught ends the run, but not without the rows that are measured. Its programs end with this one.
process.on('uncaughtException', (error) => {
  failed.push(`the run: ${reasonOf(error)}`);
  report();
  process.exit(1);
});
for (const benchmark of BENCHMARKS) {
  if (values.only === true && !positionals.includes(benchmark.name)) continue;
  const progress = (text: string) => process.stderr.write(`… ${text}\n`);
  try {
    rows.push(...(await benchmark.run(progress, (text) => leftOut.push(text))));
  } catch (error) {
    // The others are still worth their time.
    failed.push(`${benchmark.name}: ${reasonOf(error)}`);
  }
}
report();

function report(): void {
  process.stdout.write(`${table(cellsOf(rows))}\n`);
  for (const text of leftOut) process.stderr.write(`left out: ${text}\n`);
  for (const text of failed) process.stderr.write(`failed: ${text}\n`);
  if (failed.length > 0) process.exitCode = 1;
  if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(rows, null, 2)}\n`);
}

function names(): string {
  return BENCHMARKS.map((benchmark) => benchmark.name).join(', ');
}

function cellsOf(all: readonly Row[]): string[][] {
  const number = (value: number) => (value >= 100 ? value.toFixed(0) : value.toFixed(1));
  return [
    ['name', 'ours', 'against', 'theirs', 'ratio', 'aim', ''],
    ...all.map((row) => [
      row.name,
      `${number(row.value)} ${row.unit}`,
      row.against,
      `${number(row.againstValue)} ${row.unit}`,
      row.ratio.toFixed(1),
      row.aim,
      row.aim === '' ? '' : row.met ? 'met' : 'missed',
    ]),
  ];
}
