export interface SoakOptions {
  /** Number of runs, sessions or seeds; seconds for a soak that is timed. */
  amount: number;
  firstSeed: number;
  /** Number of parallel workers, if the soak supports it. */
  lanes: number;
  /** Aborts on Ctrl-C: end the current work and return the results so far. */
  signal: AbortSignal;
  progress(done: number, text: string): void;
}

/** Results of a soak; `figures` are table rows in order. */
export interface SoakResult {
  figures: Readonly<Record<string, number | string>>;
  /** Each names its seed and the command to repeat it. */
  failures: readonly string[];
  /** Printed before the table. */
  text?: string;
}

/** A long-running variant of a test. */
export interface Soak {
  name: string;
  /** Unit of `amount`, for example `runs`. */
  unit: string;
  amount: number;
  run(options: SoakOptions): Promise<SoakResult>;
}
