/** What a soak is told. */
export interface SoakOptions {
  /** How many of its runs, sessions or seeds; for what lasts, seconds. */
  amount: number;
  firstSeed: number;
  /** How much goes side by side, where it can. */
  lanes: number;
  /** Aborts on Ctrl-C: end what is under way and tell what was done so far. */
  signal: AbortSignal;
  progress(done: number, text: string): void;
}

/** What a soak found; `figures` are the rows of the table, in their order. */
export interface SoakResult {
  figures: Readonly<Record<string, number | string>>;
  /** Each names its seed and says how to run it alone. */
  failures: readonly string[];
}

/** A long form of a test. */
export interface Soak {
  name: string;
  /** What `amount` counts, as `runs`. */
  unit: string;
  amount: number;
  run(options: SoakOptions): Promise<SoakResult>;
}
