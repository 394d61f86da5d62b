/**
 * A program of its own: feeds each target its inputs, so that whatever an input does to a process, hang, crash or grow,
 * its supervisor sees. Its arguments are the seed, how many inputs, a file for its place, and where to begin.
 */
import { openSync, writeSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { keptBytes } from '../support/memory.ts';
import { inputOf, type Part, shares } from './plan.ts';
import { type Failure, PLACE_BYTES, shortHex, type TargetReport, type Told } from './report.ts';
import { Broken, type Stage, type Target } from './target.ts';

/**
 * What a process may keep of all inputs of one target, caches and compiled code included: up to 13 MB come and go, however
 * many inputs there are.
 */
const GROWN_BYTES_MAX = 24_000_000;
/** The share of the inputs after which caches and compiled code are there, and growth is counted. */
const WARM = 0.3;
const FAILURES_OF_A_TARGET_MAX = 3;

interface Args {
  seed: number;
  inputs: number;
  placeFile: string;
  /** The target and the input to begin with. */
  from: { target: number; input: number };
  part?: Part;
}

const args = JSON.parse(process.argv[2] ?? '{}') as Args;
const placeFd = openSync(args.placeFile, 'r+');
const place = Buffer.alloc(PLACE_BYTES);
let reportFailure: (what: string) => void = (what) =>
  tell({ kind: 'failure', failure: { target: '', index: -1, what, input: '' } });

function tell(told: Told): void {
  process.send?.(told);
}

async function feedAll(target: Target, number: number, count: number, first: number): Promise<TargetReport> {
  const ends: (() => unknown)[] = [];
  const world = {
    folder: async () => {
      const folder = await mkdtemp(join(tmpdir(), 'paybox-fuzz-'));
      ends.push(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
      return folder;
    },
    onEnd: (end: () => unknown) => void ends.push(end),
  };
  const report = {
    name: target.name,
    inputs: 0,
    taken: 0,
    refused: 0,
    ms: 0,
    slowestMs: 0,
    slowest: '',
    grownBytes: 0,
  };
  const began = process.cpuUsage();
  let failures = 0;
  let index = first;
  let input: Buffer = Buffer.alloc(0);
  const failed = (what: string) => {
    failures += 1;
    const failure: Failure = { target: target.name, index, what, input: shortHex(input) };
    tell({ kind: 'failure', failure });
  };
  reportFailure = failed;
  let keptBefore: number | undefined;
  try {
    const stage = await target.open(world);
    for (; index < count && failures < FAILURES_OF_A_TARGET_MAX; index += 1) {
      if (keptBefore === undefined && index >= first + (count - first) * WARM)
        keptBefore = await settledBytes(stage, failed);
      input = inputOf(target, args.seed, index);
      place.writeUInt32LE(number, 0);
      place.writeUInt32LE(index, 4);
      writeSync(placeFd, place, 0, PLACE_BYTES, 0);
      const startedMs = performance.now();
      try {
        if (await stage.feed(input)) report.taken += 1;
        else report.refused += 1;
      } catch (error) {
        failed(error instanceof Broken ? error.message : String(error instanceof Error ? error.stack : error));
      }
      const tookMs = performance.now() - startedMs;
      if (tookMs > report.slowestMs) Object.assign(report, { slowestMs: tookMs, slowest: shortHex(input) });
      report.inputs += 1;
    }
    index = -1;
    input = Buffer.alloc(0);
    const keptAfter = await settledBytes(stage, failed);
    report.grownBytes = keptAfter - (keptBefore ?? keptAfter);
    if (report.grownBytes > GROWN_BYTES_MAX) failed(`${report.grownBytes} bytes are kept, at most ${GROWN_BYTES_MAX}`);
  } finally {
    for (const end of ends.reverse()) await end();
  }
  const { user, system } = process.cpuUsage(began);
  report.ms = (user + system) / 1_000;
  return report;
}

async function settledBytes(stage: Stage, failed: (what: string) => void): Promise<number> {
  try {
    await stage.check?.();
  } catch (error) {
    failed(error instanceof Error ? error.message : String(error));
  }
  return keptBytes();
}

// Without its supervisor nobody would see what comes of it.
process.on('disconnect', () => process.exit());
process.on('uncaughtException', (error) => reportFailure(`uncaught: ${error.stack ?? error}`));
process.on('unhandledRejection', (error) =>
  reportFailure(`unhandled: ${error instanceof Error ? error.stack : error}`),
);
// Deprecations and leaks of listeners are told this way.
process.on('warning', (warning) => {
  if (warning.name === 'MaxListenersExceededWarning') reportFailure(`listeners leak: ${warning.message}`);
});

let number = 0;
for (const [target, count] of shares(args.inputs, args.part)) {
  if (number >= args.from.target) {
    const first = number === args.from.target ? args.from.input : 0;
    try {
      tell({ kind: 'target', report: await feedAll(target, number, count, first) });
    } catch (error) {
      reportFailure(`the target could not be opened or ended: ${error instanceof Error ? error.stack : error}`);
    }
  }
  number += 1;
}
tell({ kind: 'end' });
process.disconnect?.();
