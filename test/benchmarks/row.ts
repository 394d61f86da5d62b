/** A row of the table: our value, the lower bound or peer of the same run, and the goal. */
export interface Row {
  name: string;
  value: number;
  unit: string;
  against: string;
  againstValue: number;
  ratio: number;
  aim: string;
  met: boolean;
}

/** A row whose goal is an upper limit, in the row's unit. */
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

/** The value below which a `share` (0 to 1) of the samples is. */
export function percentile(samples: readonly number[], share: number): number {
  const sorted = samples.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

export interface Benchmark {
  name: string;
  /** `leaveOut` says what is not measured here, and what to do about it. */
  run(progress: (text: string) => void, leaveOut: (text: string) => void): Promise<Row[]>;
}
