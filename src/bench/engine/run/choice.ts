import type { Scenario } from '../../scenarios/scenario.ts';

/** One run of a scenario. */
export interface Entry {
  scenario: Scenario;
  seed: number;
}

/** One shard of a run: shard `number` of `of` shards. */
export interface Shard {
  number: number;
  of: number;
}

export interface Choice {
  /** Runs only the scenarios whose file or name it matches. */
  grep?: RegExp | undefined;
  shard?: Shard | undefined;
  /** The number of runs of each scenario. */
  repeat: number;
  /** The seed of each scenario's first run. Every further run has the next number. */
  seed: number;
}

/** Returns the chosen runs of these scenarios, in their order. */
export function chosen(scenarios: readonly Scenario[], { grep, shard, repeat, seed }: Choice): Entry[] {
  const wanted = scenarios.filter(({ file, name }) => grep?.test(`${file} ${name}`) ?? true);
  const entries = wanted.flatMap((scenario) =>
    Array.from({ length: repeat }, (_, index): Entry => {
      const name = repeat === 1 ? scenario.name : `${scenario.name} (${index + 1}/${repeat})`;
      return { scenario: { ...scenario, name }, seed: seed + index };
    }),
  );
  return shard === undefined ? entries : shardOf(entries, shard);
}

/**
 * Returns the entries of one shard. Each entry is in exactly one shard, in whatever order a machine lists the files.
 */
function shardOf(entries: readonly Entry[], { number, of }: Shard): Entry[] {
  const key = ({ scenario, seed }: Entry) => `${scenario.file} ${seed} ${scenario.name}`;
  const sorted = entries.toSorted((a, b) => (key(a) < key(b) ? -1 : 1));
  const own = new Set(sorted.filter((_, index) => index % of === number - 1));
  return entries.filter((entry) => own.has(entry));
}
