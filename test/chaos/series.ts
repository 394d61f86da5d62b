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

/** More failures say no more. */
const FAILURES_MAX = 5;
/** Runs that share one world: each payment takes room on its small disks. */
const RUNS_PER_WORLD_MAX = 10;

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Plays the runs of all seeds. A run that fails ends its world; the next one gets another. Never throws for a failure.
 * Without `signal` a signal that ends this process ends the worlds first. In any case none outlives the process.
 */
export async function playChaosSeries({ seeds, lanes, onProgress, signal }: ChaosSeriesOptions): Promise<ChaosTally> {
  const tally: ChaosTally = { runs: 0, figures: {}, failures: [] };
  const left = [...seeds];
  const worlds = new Worlds();
  if (signal === undefined) worlds.endBySignals();
  const isOver = () => left.length === 0 || signal?.aborted === true || tally.failures.length >= FAILURES_MAX;
  const lane = async () => {
    while (!isOver()) await playWorld(worlds, left, isOver, tally, onProgress);
  };
  try {
    await Promise.all(Array.from({ length: lanes }, lane));
    return tally;
  } finally {
    worlds.close();
  }
}

/** The worlds that are open, none of which outlives this process. */
class Worlds {
  readonly #open = new Set<ChaosWorld>();
  readonly #opening = new Set<Promise<ChaosWorld>>();
  readonly #listeners: (readonly [event: string, listener: () => void])[] = [];

  constructor() {
    this.#on('exit', () => this.#abandon());
  }

  /** From now on these signals end the worlds, and then this process. */
  endBySignals(): void {
    for (const signal of SIGNALS) {
      this.#on(signal, () => {
        void Promise.allSettled(this.#opening).then(() => {
          this.#abandon();
          this.close();
          process.kill(process.pid, signal);
        });
      });
    }
  }

  async open(): Promise<ChaosWorld> {
    const opening = openChaosWorld();
    this.#opening.add(opening);
    try {
      const world = await opening;
      this.#open.add(world);
      return world;
    } finally {
      this.#opening.delete(opening);
    }
  }

  async end(world: ChaosWorld): Promise<void> {
    await world.close();
    this.#open.delete(world);
  }

  close(): void {
    for (const [event, listener] of this.#listeners) process.off(event, listener);
  }

  #on(event: string, listener: () => void): void {
    this.#listeners.push([event, listener]);
    process.on(event, listener);
  }

  #abandon(): void {
    for (const world of this.#open) world.abandon();
  }
}

async function playWorld(
  worlds: Worlds,
  left: number[],
  isOver: () => boolean,
  tally: ChaosTally,
  onProgress: ChaosSeriesOptions['onProgress'],
): Promise<void> {
  let world: ChaosWorld | undefined;
  try {
    world = await worlds.open();
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
    if (world !== undefined) await worlds.end(world).catch((error: unknown) => tally.failures.push(String(error)));
  }
}

function addTo(figures: ChaosReport, report: ChaosReport): void {
  for (const [name, figure] of Object.entries(report)) {
    const known = figures[name] ?? 0;
    figures[name] = name.startsWith('longest') ? Math.max(known, figure) : known + figure;
  }
}
