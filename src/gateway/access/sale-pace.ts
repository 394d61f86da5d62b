import { BudgetMeter } from '../../lib/budget.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Caller } from './authorizer.ts';

/** One token of a cashier can make this many sales at once, and this many in each minute. */
export const CASHIER_SALES_MAX = 30;
const MINUTE_MS = 60_000;

/**
 * Limits how fast cashiers sell. The store has room for a limited number of orders: without this, a program with the
 * token of one till could push out everybody's orders (PROTOCOL.md, clause LIM-10).
 */
export class SalePace {
  readonly #clock: Clock;
  readonly #sales = new BudgetMeter({ usesMax: CASHIER_SALES_MAX, forgetMs: MINUTE_MS / CASHIER_SALES_MAX });

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Returns the time until the caller may sell again. Returns 0 if he may sell now, and counts the sale. */
  waitMs({ role, who, digest }: Caller): number {
    if (role !== 'cashier') return 0;
    const nowMs = this.#clock.monotonicMs();
    const key = digest ?? who;
    const waitMs = this.#sales.waitMs(key, nowMs);
    if (waitMs === 0) this.#sales.add(key, nowMs);
    return waitMs;
  }
}
