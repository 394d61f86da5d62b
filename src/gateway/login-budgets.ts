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
