import { PreconditionFailed } from '../../check.ts';
import type { CheckContext } from '../check-context.ts';
import { forEachCase } from '../expectations.ts';
import type { Order } from '../subject.ts';

/** The highest amount (PROTOCOL.md, clause LIM-1). */
export const AMOUNT_MAX = 9_999_999_999_999;
/** The least, a small one, that of a coffee, one that is no signed number of 32 bits, and the highest. */
export const AMOUNTS = [1, 1_000, 35_000, 3_000_000_000, AMOUNT_MAX] as const;
export const EVERY_SIZE = 'from 1 to 9,999,999,999,999';

/**
 * Judges a new order of each amount. An amount that the service refuses is left out, because LIM-1 judges that. Throws
 * PreconditionFailed when it refuses all.
 */
export async function forEachAmount(t: CheckContext, judge: (order: Order) => Promise<void>): Promise<void> {
  const refusals: PreconditionFailed[] = [];
  await forEachCase(AMOUNTS, async (amount) => {
    try {
      await judge({ ...t.newOrder(), amount });
    } catch (error) {
      if (!(error instanceof PreconditionFailed)) throw error;
      refusals.push(error);
    }
  });
  const [first] = refusals;
  if (first !== undefined && refusals.length === AMOUNTS.length) throw first;
}
