import { type ChildProcess, fork } from 'node:child_process';
import { openSync, readSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { inputOf, type Part, shares } from './plan.ts';
import { type Failure, PLACE_BYTES, shortHex, type TargetReport, type Told } from './report.ts';

export interface FuzzOptions {
  /** How many inputs all targets get together. */
  inputs: number;
  /** The same seed makes the same inputs. */
  seed: number;
  /** Only the targets of this part. */
  part?: Part;
  /** Told after each target. */
  onProgress?: (report: TargetReport) => void;
}

export interface FuzzResult {
  reports: TargetReport[];
  failures: Failure[];
}

/** An input that takes longer has hung, on the slowest machine: a thousandth of it is much. */
const DEADLINE_MS = 30_000;
const LOOK_MS = 250;
/** A target that ends the process, or hangs, is not tried for ever. */
const DEATHS_OF_A_TARGET_MAX = 2;
const HEAP_MB_MAX = 512;
const LAST_WORDS_CHARS_MAX = 2_000;

const CHILD = fileURLToPath(new URL('./child.ts', import.meta.url));

interface Place {
  target: number;
  input: number;
}

/** Feeds every decoder its mutated inputs, in processes of their own. Never throws for what an input does. */
export async function run({ inputs, seed, part, onProgress }: FuzzOptions): Promise<FuzzResult> {
  const folder = await mkdtemp(join(tmpdir(), 'paybox-fuzz-run-'));
  const placeFile = join(folder, 'place');
  const targets = [...shares(inputs, part).keys()];
  const result: FuzzResult = { reports: [], failures: [] };
  try {
    let from: Place = { target: 0, input: 0 };
    for (let deaths = 0; from.target < targets.length; ) {
      writeFileSync(placeFile, placeBytes(from));
      const args = { seed, inputs, placeFile, from, part };
      const died = await oneChild(args, (told) => {
        if (told.kind === 'failure') result.failures.push(told.failure);
        if (told.kind !== 'target') return;
        result.reports.push(told.report);
        onProgress?.(told.report);
      });
      if (died === undefined) return result;
      const { place, how } = died;
      const target = targets[place.target];
      const input = target === undefined ? '' : shortHex(inputOf(target, seed, place.input));
      result.failures.push({ target: target?.name ?? '', index: place.input, what: how, input });
      deaths = place.target === from.target ? deaths + 1 : 1;
      from = { target: place.target, input: place.input + 1 };
      if (deaths < DEATHS_OF_A_TARGET_MAX) continue;
      from = { target: place.target + 1, input: 0 };
      deaths = 0;
    }
    return result;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function placeBytes({ target, input }: Place): Buffer {
  const bytes = Buffer.alloc(PLACE_BYTES);
  bytes.writeUInt32LE(target, 0);
  bytes.writeUInt32LE(input, 4);
  return bytes;
}

/** One child from start to end; where it was and how it died, if it did. */
async function oneChild(
  args: { placeFile: string; from: Place },
  onTold: (told: Told) => void,
): Promise<{ place: Place; how: string } | undefined> {
  const child = fork(CHILD, [JSON.stringify(args)], {
    execArgv: [`--max-old-space-size=${HEAP_MB_MAX}`, '--disable-warning=ExperimentalWarning'],
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
  let ended = false;
  let words = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    words = (words + text).slice(-LAST_WORDS_CHARS_MAX);
  });
  child.on('message', (told: Told) => {
    if (told.kind === 'end') ended = true;
    onTold(told);
  });
  const watch = watchPlace(child, args);
  const how = await new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(`could not be started: ${error.message}`));
    child.once('close', (code, signal) => resolve(`the process ended with ${signal ?? code}: ${words.trim()}`));
  });
  clearInterval(watch.timer);
  if (ended && !watch.hung()) return undefined;
  const hung = `no end within ${DEADLINE_MS} ms`;
  return { place: watch.place(), how: watch.hung() ? hung : how };
}

/** Kills a child that stays at one input for too long. */
function watchPlace(child: ChildProcess, { placeFile, from }: { placeFile: string; from: Place }) {
  const fd = openSync(placeFile, 'r');
  const bytes = Buffer.alloc(PLACE_BYTES);
  let place = from;
  let sinceMs = performance.now();
  let hung = false;
  const look = () => {
    readSync(fd, bytes, 0, PLACE_BYTES, 0);
    const now = { target: bytes.readUInt32LE(0), input: bytes.readUInt32LE(4) };
    if (now.target !== place.target || now.input !== place.input) sinceMs = performance.now();
    place = now;
    if (performance.now() - sinceMs < DEADLINE_MS || hung) return;
    hung = true;
    child.kill('SIGKILL');
  };
  const timer = setInterval(look, LOOK_MS);
  return {
    timer,
    hung: () => hung,
    place: () => {
      if (!hung) look();
      return place;
    },
  };
}
