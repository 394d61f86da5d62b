import { BudgetMeter } from '../../lib/budget.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Caller } from './authorizer.ts';

/** Sales that one token of a cashier makes at once, and in each minute. */
export const CASHIER_SALES_MAX = 30;
const MINUTE_MS = 60_000;

/**
 * How fast cashiers sell. The store keeps a number of orders: a program with the token of a till could otherwise push
 * out everybody's (PROTOCOL.md, clause LIM-10).
 */
export class SalePace {
  readonly #clock: Clock;
  readonly #sales = new BudgetMeter({ usesMax: CASHIER_SALES_MAX, forgetMs: MINUTE_MS / CASHIER_SALES_MAX });

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Time until the caller may sell again; 0 if he may now, and then it counts. */
  waitMs({ role, who, digest }: Caller): number {
    if (role !== 'cashier') return 0;
    const nowMs = this.#clock.monotonicMs();
    const key = digest ?? who;
    const waitMs = this.#sales.waitMs(key, nowMs);
    if (waitMs === 0) this.#sales.add(key, nowMs);
    return waitMs;
  }
}
