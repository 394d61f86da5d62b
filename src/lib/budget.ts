/** Keys of one meter. Beyond that, those whose use would be forgotten first are dropped. */
const KEYS_MAX = 10_000;
/** Keys that are dropped together, so that looking for them costs little for each. */
const DROPPED_TOGETHER = 1_000;

/** `usesMax` uses are allowed at once. One use is forgotten after each `forgetMs` milliseconds. */
export interface Budget {
  usesMax: number;
  forgetMs: number;
}

/** The use of a budget, for each key on its own. Times are monotonic milliseconds. */
export interface BudgetUse {
  /** Returns the time until `key` may use the budget again; 0 if it may now. */
  waitMs(key: string, nowMs: number): number;
  add(key: string, nowMs: number): void;
}

/** Counts in memory how much of a budget each key has used. */
export class BudgetMeter implements BudgetUse {
  readonly #budget: Budget;
  /** The time at which all use of a key is forgotten. */
  readonly #forgottenAtMs = new Map<string, number>();

  constructor(budget: Budget) {
    this.#budget = budget;
  }

  /** Returns the wait as `waitMs` of BudgetUse does. `more` counts uses beside those that were added. */
  waitMs(key: string, nowMs: number, more = 0): number {
    const { usesMax, forgetMs } = this.#budget;
    return Math.max(0, (this.#forgottenAtMs.get(key) ?? nowMs) - nowMs - (usesMax - 1 - more) * forgetMs);
  }

  add(key: string, nowMs: number): void {
    const beganMs = Math.max(nowMs, this.#forgottenAtMs.get(key) ?? nowMs);
    this.#forgottenAtMs.set(key, beganMs + this.#budget.forgetMs);
    if (this.#forgottenAtMs.size > KEYS_MAX) this.#dropFew();
  }

  /** Drops the keys with the least use. So a caller with many names cannot push out a busy key. */
  #dropFew(): void {
    const bySoonest = [...this.#forgottenAtMs].sort(([, a], [, b]) => a - b);
    for (const [key] of bySoonest.slice(0, DROPPED_TOGETHER)) this.#forgottenAtMs.delete(key);
  }
}
