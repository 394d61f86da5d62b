import { gap, type ServiceCheck } from '../check-context.ts';
import { expectFacts, expectSuccess, forEachCase } from '../expectations.ts';
import { callbackBody, payOrder } from './callbacks.ts';
import { AMOUNTS, EVERY_SIZE, forEachAmount } from './sizes.ts';

/** Payments of every size (PROTOCOL.md, clauses LIM-1 and SYN-2). */
export const amountChecks: readonly ServiceCheck[] = [
  gap('SYN-2', `a callback says the amount, ${EVERY_SIZE}`, ['callbacks'], (t) =>
    forEachAmount(t, async (order) => {
      const { amount, content } = order;
      await expectFacts({ amount, content }, await callbackBody(t, await payOrder(t, order)));
    }),
  ),
  gap('LIM-1', 'amounts of 1 and 9,999,999,999,999 are taken in a test callback', ['sandbox'], (t) =>
    forEachCase(AMOUNTS, async (amount) => {
      expectSuccess(await t.simulate(t.paymentBody({ ...t.newOrder(), amount })), `an amount of ${amount}`);
    }),
  ),
];
