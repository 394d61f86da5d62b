/** One line of the table: ours, the floor or peer measured in the same run, and the aim. */
export interface Row {
  name: string;
  value: number;
  unit: string;
  against: string;
  againstValue: number;
  /** value / againstValue. */
  ratio: number;
  aim: string;
  met: boolean;
}

/** A row whose aim is a limit on the value, in the row's unit. */
export function rowUnder(
  name: string,
  unit: string,
  value: number,
  against: { name: string; value: number },
  limit: number,
): Row {
  return {
    name,
    value,
    unit,
    against: against.name,
    againstValue: against.value,
    ratio: value / against.value,
    aim: `under ${limit} ${unit}`,
    met: value < limit,
  };
}

/** The value below which a `share` (0 to 1) of the sorted samples lies. */
export function percentile(samples: readonly number[], share: number): number {
  const sorted = samples.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

export interface Benchmark {
  name: string;
  run(progress: (text: string) => void): Promise<Row[]>;
}
