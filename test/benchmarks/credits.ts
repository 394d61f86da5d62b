import { join } from 'node:path';
import { moved, PROVIDERS } from '../support/providers.ts';
import { DEMO, Shop, startPair, withFixture } from './fixture.ts';
import { openSpareBox, took, watch } from './loop.ts';
import { type Benchmark, percentile, type Row, rowUnder } from './row.ts';

const WARM_UP = 20;
const SAMPLES = 200;
const NAME = 'sepay';

/**
 * From a webhook's request to `paid` on the box, compared with the same request at a server that only commits it, plus a
 * QoS 1 round trip of the same broker.
 */
export const credits: Benchmark = {
  name: 'credits',
  run: (progress) =>
    withFixture(async (fixture) => {
      const provider = PROVIDERS['sepay signed'];
      if (provider === undefined) throw new Error('no provider');
      const pair = await startPair(fixture, { gateway: { sources: [{ name: NAME, ...provider.options }] } });
      const [floorUrl, spare, events] = await Promise.all([
        fixture.server(join(import.meta.dirname, 'committing-server.ts')),
        openSpareBox(pair),
        watch(`${pair.boxUrl}/events`),
      ]);
      const shop = new Shop(pair.baseUrl);
      await shop.login();
      const samples = { answered: [] as number[], paid: [] as number[], floor: [] as number[] };
      for (let n = 0; n < WARM_UP + SAMPLES; n += 1) {
        if (n % 50 === 0) progress(`credits ${n}/${WARM_UP + SAMPLES}`);
        const order = await shop.prepare();
        await shop.send(order);
        const money = moved({
          id: n + 1,
          reference: `FT${n}`,
          bankAccount: DEMO.account.bankAccount,
          text: `MBVCB.${n}.${order.content}.CT tu 9990001`,
          atMs: Date.now(),
        });
        const { headers, body } = provider.call(provider.body(money), { nowMs: Date.now() });
        const post = async (url: string) => {
          const answer = await fetch(url, { method: 'POST', headers, body });
          if (answer.status !== 200) throw new Error(`${url}: ${answer.status}`);
          await answer.text();
        };
        const seen = events.next((it) => it.includes('"state":"paid"') && it.includes(`"${order.orderId}"`));
        const startedMs = performance.now();
        const answeredMs = await took(() => post(`${pair.origin}/hooks/${NAME}`));
        await seen;
        const paidMs = performance.now() - startedMs;
        const floorMs = await took(async () => {
          await post(floorUrl);
          await spare.publish();
        });
        if (n < WARM_UP) continue;
        samples.answered.push(answeredMs);
        samples.paid.push(paidMs);
        samples.floor.push(floorMs);
      }
      events.close();
      await spare.close();
      return rowsOf(samples);
    }),
};

function rowsOf({ answered, paid, floor }: Record<'answered' | 'paid' | 'floor', number[]>): Row[] {
  const at = (share: number) => ({ name: 'no-op with a commit + QoS 1 round trip', value: percentile(floor, share) });
  return [
    rowUnder('webhook to its answer, p50', 'ms', percentile(answered, 0.5), at(0.5), 50),
    rowUnder('webhook to paid on screen, p50', 'ms', percentile(paid, 0.5), at(0.5), 50),
    rowUnder('webhook to paid on screen, p99', 'ms', percentile(paid, 0.99), at(0.99), 150),
  ];
}
