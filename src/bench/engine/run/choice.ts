import type { Scenario } from '../../scenarios/scenario.ts';

/** One run of a scenario. */
export interface Entry {
  scenario: Scenario;
  seed: number;
}

/** The part `number` of `of` parts. */
export interface Shard {
  number: number;
  of: number;
}

export interface Choice {
  /** Scenarios whose file or name it matches. */
  grep?: RegExp | undefined;
  shard?: Shard | undefined;
  /** Runs of each scenario. */
  repeat: number;
  /** Of the first run of each scenario; each further run has the next one. */
  seed: number;
}

/** The runs of these scenarios that are wanted, in order. */
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

/** Each entry is in exactly one shard, in whatever order a machine lists the files. */
function shardOf(entries: readonly Entry[], { number, of }: Shard): Entry[] {
  const key = ({ scenario, seed }: Entry) => `${scenario.file} ${seed} ${scenario.name}`;
  const sorted = entries.toSorted((a, b) => (key(a) < key(b) ? -1 : 1));
  const own = new Set(sorted.filter((_, index) => index % of === number - 1));
  return entries.filter((entry) => own.has(entry));
}
