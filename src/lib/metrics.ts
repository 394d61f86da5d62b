/** Content type of the Prometheus text format. */
export const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/** Holds the samples of one metric name. */
export interface MetricFamily {
  name: string;
  type: 'counter' | 'gauge' | 'histogram';
  help?: string;
  /** Each sample has the rest of its name: `_sum`, or its labels (`labelled`). */
  samples: Iterable<readonly [suffix: string, value: number]>;
}

/** Formats labels as they follow a name: `{result="SUCCESS"}`. */
export function labelled(labels: Readonly<Record<string, string>>): string {
  return `{${Object.entries(labels)
    .map(([name, value]) => `${name}=${JSON.stringify(value)}`)
    .join()}}`;
}

/** Formats families in the Prometheus text format. */
export function metricsText(families: readonly MetricFamily[]): string {
  const lines = families.flatMap(({ name, type, help, samples }) => [
    ...(help === undefined ? [] : [`# HELP ${name} ${help}`]),
    `# TYPE ${name} ${type}`,
    ...[...samples].map(([suffix, value]) => `${name}${suffix} ${value}`),
  ]);
  return `${lines.join('\n')}\n`;
}

/** Counts values up to each limit, and above the last. */
export class Histogram {
  readonly #limits: readonly number[];
  readonly #counts: number[];
  #sum = 0;

  constructor(limits: readonly number[]) {
    this.#limits = [...limits, Infinity];
    this.#counts = this.#limits.map(() => 0);
  }

  observe(value: number): void {
    this.#sum += value;
    for (const [index, limit] of this.#limits.entries()) {
      if (value <= limit) this.#counts[index] = (this.#counts[index] ?? 0) + 1;
    }
  }

  samples(): [string, number][] {
    const buckets = this.#limits.map((limit, index): [string, number] => [
      `_bucket{le="${limit === Infinity ? '+Inf' : limit}"}`,
      this.#counts[index] ?? 0,
    ]);
    return [...buckets, ['_sum', this.#sum], ['_count', buckets.at(-1)?.[1] ?? 0]];
  }
}
