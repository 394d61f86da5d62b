/** Keys of each kind with counted failures. Beyond that, those whose failures would be forgotten first are dropped. */
const KEYS_MAX = 10_000;
/** How many are dropped together, so that looking for them costs little for each. */
const DROPPED_TOGETHER = 1_000;

/** Number of wrong logins at once; one is forgotten after each `forgetMs`. */
export interface Budget {
  failuresMax: number;
  forgetMs: number;
}

export const ADDRESS_BUDGET: Budget = { failuresMax: 30, forgetMs: 2_000 };
/** Larger than the budget of an address, so that one address alone cannot lock out a user. */
const USER_BUDGET: Budget = { failuresMax: 120, forgetMs: 500 };
/** By address, by user, and by a user at an address where it is known. */
export const LOGIN_BUDGETS = { addresses: ADDRESS_BUDGET, users: USER_BUDGET, pairs: ADDRESS_BUDGET };

/** Failures by key. */
export interface FailureCount {
  /** Time until `key` may fail again; 0 if it may now. */
  waitMs(key: string, nowMs: number): number;
  add(key: string, nowMs: number): void;
}

/** The counts of wrong logins; the members of a cluster share theirs. */
export type LoginBudgets = Record<keyof typeof LOGIN_BUDGETS, FailureCount>;

/** Counts failures by key; they are forgotten one by one. */
export class Failures implements FailureCount {
  readonly #budget: Budget;
  /** Monotonic time at which all failures of a key are forgotten. */
  readonly #forgottenAtMs = new Map<string, number>();

  constructor(budget: Budget) {
    this.#budget = budget;
  }

  /** `more` is a number of failures beside those that were added. */
  waitMs(key: string, nowMs: number, more = 0): number {
    const { failuresMax, forgetMs } = this.#budget;
    return Math.max(0, (this.#forgottenAtMs.get(key) ?? nowMs) - nowMs - (failuresMax - 1 - more) * forgetMs);
  }

  add(key: string, nowMs: number): void {
    const beganMs = Math.max(nowMs, this.#forgottenAtMs.get(key) ?? nowMs);
    this.#forgottenAtMs.set(key, beganMs + this.#budget.forgetMs);
    if (this.#forgottenAtMs.size > KEYS_MAX) this.#dropFew();
  }

  /** Drops the keys with the fewest failures: whoever fails under many names does not make one with many forgotten. */
  #dropFew(): void {
    const bySoonest = [...this.#forgottenAtMs].sort(([, a], [, b]) => a - b);
    for (const [key] of bySoonest.slice(0, DROPPED_TOGETHER)) this.#forgottenAtMs.delete(key);
  }
}
