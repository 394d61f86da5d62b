import type { Clock } from '../../lib/clock.ts';

/** A row counts as current for this time. Whoever is asked for a box that has left says so, and the row is read again. */
const BELIEVED_MS = 60_000;
/** How many boxes are remembered. The one that was read first is then forgotten. */
const BOXES_MAX = 100_000;

/** Remembers which run has a box, so that not each push reads it. Hints of others correct it. */
export class KnownHolders {
  readonly #clock: Clock;
  /** Runs by terminalCode, the one that was read first at the beginning. */
  readonly #known = new Map<string, { run: string; readMs: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Returns the run that has this box. Undefined if that must be read. */
  of(terminalCode: string): string | undefined {
    const known = this.#known.get(terminalCode);
    return known !== undefined && this.#clock.monotonicMs() - known.readMs < BELIEVED_MS ? known.run : undefined;
  }

  /** Stores what was read. */
  read(terminalCode: string, run: string | undefined): void {
    this.#known.delete(terminalCode);
    if (run === undefined) return;
    this.#known.set(terminalCode, { run, readMs: this.#clock.monotonicMs() });
    const [first] = this.#known.keys();
    if (this.#known.size > BOXES_MAX && first !== undefined) this.#known.delete(first);
  }

  forget(terminalCode: string): void {
    this.#known.delete(terminalCode);
  }
}
