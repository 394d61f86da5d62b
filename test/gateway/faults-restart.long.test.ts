import { describe, expect, it } from 'vitest';
import { type FaultName, magicContent } from '../../src/protocol/faults.ts';
import { eventually } from '../support/net.ts';
import { ENGINES } from '../support/stores.ts';
import { Market, type Stall } from './faults-market.ts';
import { gatewayProgram } from './gateway-program.ts';
import { processed } from './harness.ts';

const LONG_SECONDS = 600;
/** Longer than from an attempt to the kill, and short enough to wait for after it. */
const RETRY_MS = 3_000;

describe.each(ENGINES)('a gateway that is killed in the midst of its faults, on $name', ({ missing, places }) => {
  const place = places();

  it.skipIf(missing)(
    'FLT-11 MSG-7 a gateway that is killed in the midst of its faults has none of them after it, and no money is lost or told twice',
    async () => {
      const gateways: Awaited<ReturnType<typeof gatewayProgram>>[] = [];
      const calls: string[] = [];
      let hung = '';
      const market = await Market.open(
        async (url) => {
          const gateway = await gatewayProgram(await place(), url, { callbackRetryWaitsMs: [RETRY_MS, 100, 100, 100] });
          gateways.push(gateway);
          return gateway.reach;
        },
        [
          (call, response, request) => {
            const { content } = JSON.parse(call.body) as { content: string };
            calls.push(content);
            // The duplicate is under way for ever.
            if (content !== hung || calls.filter((it) => it === hung).length !== 2) processed(call, response, request);
          },
        ],
      );
      const [gateway] = gateways;
      const [first, second, third] = market.stalls;
      if (gateway === undefined || first === undefined || second === undefined || third === undefined)
        throw new Error('no');
      const hasHappened = (fault: FaultName) =>
        eventually(fault, () => gateway.log.some((it) => it.event === 'fault-triggered' && it.fault === fault));
      const order = async (fault: FaultName, content: string, seconds?: number) => {
        await market.order({ fault, content, ...(seconds === undefined ? {} : { seconds }) });
      };
      const paid = async (at: Stall, content: string) => {
        const { sold, transactionId } = await market.trade(at, content);
        expect([sold, transactionId]).toEqual(['', expect.any(String)]);
      };

      hung = 'DUPLICATE';
      await order('sync-twice', hung);
      await paid(first, hung);
      await eventually('the duplicate', () => calls.filter((it) => it === hung).length === 2);
      await order('sync-late', 'LATE', LONG_SECONDS);
      await paid(second, 'LATE');
      await order('paid-late', 'UNHEARD', LONG_SECONDS);
      await paid(third, 'UNHEARD');
      const [magicSync, magicTwice] = [magicContent('sync-late'), magicContent('paid-twice')];
      await paid(first, magicSync);
      expect((await market.sell(first, magicTwice)).sold).toBe('');
      await order('push-late', 'PUSHED', LONG_SECONDS);
      const pushed = market.sell(second, 'PUSHED').catch((error: unknown) => ({ sold: String(error) }));
      await order('partner-500', 'RETRY');
      await paid(third, 'RETRY');
      for (const it of ['sync-late', 'paid-late', 'push-late', 'partner-500'] as const) await hasHappened(it);
      await eventually('the first of two attempts', async () => {
        const { callbacks } = await market.books();
        return callbacks.some((it) => it.attempts.some(({ response }) => response?.status === 500));
      });
      expect(await market.standing()).toHaveLength(3);
      expect(calls.filter((it) => it !== hung)).toEqual(['RETRY']);

      await gateway.program.kill();
      gateway.program.start();
      await gateway.program.ready();
      expect((await pushed).sold).toContain('Error');
      expect(await market.standing()).toEqual([]);
      for (const at of market.stalls) await market.isWell(at);
      await market.expectRight({ again: 1 });
      expect(calls.toSorted()).toEqual([hung, hung, magicSync, 'LATE', 'RETRY', 'RETRY', 'UNHEARD'].toSorted());
      expect((await second.box.status()).order).toBeNull();
      expect(second.box.logged('push-shown')).toHaveLength(1);

      await market.pay(first, magicTwice);
      await market.expectRight({ again: 1 });
      const { payments } = await market.books();
      expect(payments.filter((it) => it.content === magicTwice)).toHaveLength(2);
      await Promise.all(market.stalls.map((at) => market.tradeFlawlessly(at)));
      await market.expectRight({ again: 1 });
    },
  );
});
