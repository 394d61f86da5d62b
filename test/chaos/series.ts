import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ChaosReport, playChaos } from './run.ts';
import { type ChaosWorld, openChaosWorld } from './world.ts';

/** What a series of runs came to. */
export interface ChaosTally {
  runs: number;
  figures: ChaosReport;
  /** What failed, each with its seed and what happened. */
  failures: string[];
}

export interface ChaosSeriesOptions {
  seeds: readonly number[];
  /** Worlds that run side by side. */
  lanes: number;
  onProgress?: (tally: Readonly<ChaosTally>) => void;
  signal?: AbortSignal;
}

const KEEPER = join(import.meta.dirname, 'keeper.ts');
/** More failures say no more. */
const FAILURES_MAX = 5;
/** Runs that share one world: each payment takes room on its small disks. */
const RUNS_PER_WORLD_MAX = 10;

/**
 * Plays the runs of all seeds. A run that fails ends its world; the next one gets another. Never throws for a failure. A process of its
 * own deletes what is left of the worlds, however this process ends.
 */
export async function playChaosSeries({ seeds, lanes, onProgress, signal }: ChaosSeriesOptions): Promise<ChaosTally> {
  const tally: ChaosTally = { runs: 0, figures: {}, failures: [] };
  const left = [...seeds];
  const isOver = () => left.length === 0 || signal?.aborted === true || tally.failures.length >= FAILURES_MAX;
  const lane = async () => {
    while (!isOver()) await playWorld(left, isOver, tally, onProgress);
  };
  const leave = await enterFolder();
  try {
    await Promise.all(Array.from({ length: lanes }, lane));
    return tally;
  } finally {
    await leave();
  }
}

/** From now on all temporary files are in a folder that a keeper looks after; returns what deletes it. */
async function enterFolder(): Promise<() => Promise<void>> {
  const before = process.env.TMPDIR;
  // Short, because the address of a socket in it has 107 bytes at most.
  const folder = await mkdtemp(join(tmpdir(), 'chaos-'));
  // PostgreSQL does not run as root.
  await chmod(folder, 0o1777);
  // A session of its own: Ctrl-C at the terminal is for its starter.
  const keeper = spawn(process.execPath, [KEEPER, folder], { detached: true, stdio: ['pipe', 'ignore', 'inherit'] });
  process.env.TMPDIR = folder;
  return async () => {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
    const ended = once(keeper, 'exit');
    keeper.stdin.end();
    await ended;
  };
}

async function playWorld(
  left: number[],
  isOver: () => boolean,
  tally: ChaosTally,
  onProgress: ChaosSeriesOptions['onProgress'],
): Promise<void> {
  let world: ChaosWorld | undefined;
  try {
    world = await openChaosWorld();
    for (let runs = 0; runs < RUNS_PER_WORLD_MAX && !isOver(); runs += 1) {
      const { report, isSpent } = await playChaos(world, left.shift() ?? 0);
      addTo(tally.figures, report);
      tally.runs += 1;
      onProgress?.(tally);
      if (isSpent) break;
    }
  } catch (error) {
    tally.failures.push(error instanceof Error ? error.message : String(error));
    tally.runs += 1;
    onProgress?.(tally);
  } finally {
    await world?.close().catch((error: unknown) => tally.failures.push(String(error)));
  }
}

function addTo(figures: ChaosReport, report: ChaosReport): void {
  for (const [name, figure] of Object.entries(report)) {
    const known = figures[name] ?? 0;
    figures[name] = name.startsWith('longest') ? Math.max(known, figure) : known + figure;
  }
}
