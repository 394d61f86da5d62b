import fs, { renameSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

/*
 * Loaded into a program before its own code (`--import …/inside.ts?to=FILE`, with `--expose-gc`): on SIGUSR2 it collects garbage and
 * writes to the file how often the program has waited for the disk, and the memory that it has in use.
 */

/** What the program says of itself. */
export interface Inside {
  /** Counts the looks, from 1. */
  look: number;
  /** Waits for the disk, outside of the event loop. */
  syncs: number;
  heapBytes: number;
  residentBytes: number;
  /**
   * Since the look before, the most processor time that the main thread has taken between two turns of a timer that is always due: for
   * about so long the event loop did one thing. Unlike the time that passed, it does not grow while other programs have the processor.
   */
  longestTurnMs: number;
}

const file = new URL(import.meta.url).searchParams.get('to');
const wait = fs.fdatasync;
const TURN_MS = 5;
let [look, syncs, longestTurnMs] = [0, 0, 0];

if (file !== null) {
  fs.fdatasync = Object.assign((...of: Parameters<typeof wait>) => {
    syncs += 1;
    wait(...of);
  }, wait);
  syncBuiltinESMExports();
  let before = usedMs();
  const turn = () => {
    const now = usedMs();
    longestTurnMs = Math.max(longestTurnMs, now - before);
    before = now;
  };
  setInterval(turn, TURN_MS).unref();
  process.on('SIGUSR2', () => {
    turn();
    look += 1;
    const longest = longestTurnMs;
    for (let times = 0; times < 4; times += 1) globalThis.gc?.();
    const { heapUsed, external, rss } = process.memoryUsage();
    const inside: Inside = { look, syncs, heapBytes: heapUsed + external, residentBytes: rss, longestTurnMs: longest };
    writeFileSync(`${file}.new`, JSON.stringify(inside));
    renameSync(`${file}.new`, file);
    [before, longestTurnMs] = [usedMs(), 0];
  });
}

function usedMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}
