import type { Budget, BudgetUse } from '../../lib/budget.ts';

/** The budget of wrong logins from one address. */
export const ADDRESS_BUDGET: Budget = { usesMax: 30, forgetMs: 2_000 };
/** Larger than the budget of an address, so that one address alone cannot lock out a user. */
const USER_BUDGET: Budget = { usesMax: 120, forgetMs: 500 };
/** Budgets by address, by user, and by a user at an address where it is known. */
export const LOGIN_BUDGETS = { addresses: ADDRESS_BUDGET, users: USER_BUDGET, pairs: ADDRESS_BUDGET };

/** The counts of wrong logins. Gateways that share a database share theirs. */
export type LoginBudgets = Record<keyof typeof LOGIN_BUDGETS, BudgetUse>;
