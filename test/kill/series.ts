import { playRun, type RunReport } from './run.ts';
import { scriptOf, type WorldKind } from './script.ts';
import { World } from './world.ts';

/** What a series of runs came to. */
export interface Tally extends RunReport {
  runs: number;
  /** What failed, each with its seed and what happened. */
  failures: string[];
}

export interface SeriesOptions {
  seeds: readonly number[];
  /** Worlds that run side by side. */
  lanes: number;
  onProgress?: (tally: Readonly<Tally>) => void;
  signal?: AbortSignal;
}

/** More failures say no more. */
const FAILURES_MAX = 5;
/** Runs that share one world: one journal and one store live through all of them. */
const RUNS_PER_WORLD_MAX = 1_000;

interface Chunk {
  kind: WorldKind;
  seeds: number[];
}

/** Plays the runs of all seeds. A run that fails ends its world; the next one gets another. Never throws for a failure. */
export async function playSeries({ seeds, lanes, onProgress, signal }: SeriesOptions): Promise<Tally> {
  const tally: Tally = {
    runs: 0,
    kills: { agent: 0, gateway: 0, broker: 0 },
    payments: 0,
    silent: 0,
    pushes: 0,
    unanswered: 0,
    failures: [],
  };
  const chunks = chunksOf(seeds, lanes);
  const lane = async () => {
    for (let chunk = chunks.shift(); chunk !== undefined; chunk = chunks.shift()) {
      await playChunk(
        chunk,
        tally,
        () => signal?.aborted === true || tally.failures.length >= FAILURES_MAX,
        onProgress,
      );
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return tally;
}

async function playChunk(
  { kind, seeds }: Chunk,
  tally: Tally,
  isOver: () => boolean,
  onProgress: SeriesOptions['onProgress'],
): Promise<void> {
  let world: World | undefined;
  for (const seed of seeds) {
    if (isOver()) break;
    try {
      world ??= await World.open(kind);
      add(tally, await playRun(world, scriptOf(seed)));
    } catch (error) {
      tally.failures.push(error instanceof Error ? error.message : String(error));
      await world?.close();
      world = undefined;
    }
    tally.runs += 1;
    onProgress?.(tally);
  }
  await world?.close();
}

function add(tally: Tally, report: RunReport): void {
  for (const name of ['agent', 'gateway', 'broker'] as const) tally.kills[name] += report.kills[name];
  for (const name of ['payments', 'silent', 'pushes', 'unanswered'] as const) tally[name] += report[name];
}

/** Seeds by the kind of their world, the largest chunks first so that no lane is left with one at the end. */
function chunksOf(seeds: readonly number[], lanes: number): Chunk[] {
  const byKind = Map.groupBy(seeds, (seed) => scriptOf(seed).kind);
  const fairShare = Math.ceil(seeds.length / lanes);
  const size = Math.max(1, Math.min(RUNS_PER_WORLD_MAX, fairShare));
  return [...byKind]
    .flatMap(([kind, all]) =>
      Array.from({ length: Math.ceil(all.length / size) }, (_, index) => ({
        kind,
        seeds: all.slice(index * size, (index + 1) * size),
      })),
    )
    .toSorted((a, b) => b.seeds.length - a.seeds.length);
}
