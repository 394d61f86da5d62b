import { describe, expect, it } from 'vitest';
import { type ShardPlace, shardOf } from '../../src/gateway/common/shard.ts';
import type { CreditResult, CreditTask, ToldCredit } from '../../src/gateway/common/told-credit.ts';
import { CreditRoutes } from '../../src/gateway/money/credit-routes.ts';
import type { ReceiveCredit } from '../../src/gateway/money/receive-credits.ts';
import type { Credit } from '../../src/gateway/money/sources/source.ts';
import { only, storedOf, worldOf } from '../gateway/stage-records.ts';

const COUNT = 5;
const ACCOUNT = '0123456789';
const HOME = shardOf(ACCOUNT, COUNT);
const credit: Credit = {
  ...{ sourceId: '1', reference: 'FT1', bankAccount: ACCOUNT, virtualAccount: '', amount: 5_000, text: 'tien' },
  bankTimeMs: undefined,
};

type Sent = [shard: number, task: CreditTask, told: ToldCredit];

/** The routes of one shard of a cluster; `found` are credits that shards have, by shard. */
function routesAt(
  index: number,
  answer: (sent: Sent) => Promise<CreditResult>,
  found: Record<number, { payment_id: string | null }> = {},
) {
  const sent: Sent[] = [];
  const here: string[] = [];
  const creditTo = (...it: Sent) => {
    sent.push(it);
    return answer(it);
  };
  const stored = storedOf({
    directory: { account: async (name) => (name === ACCOUNT ? { bankAccount: ACCOUNT } : undefined) },
    store: {
      ofShard: (shard) => ({
        paymentRequests: { accountOf: async () => undefined, accountBehind: async () => undefined },
        credits: { same: async () => found[shard] },
      }),
    },
  });
  const place = only<ShardPlace>({ index, count: COUNT, creditTo });
  const storeHere: ReceiveCredit = async (_source, { sourceId }) => {
    here.push(sourceId);
    return { result: 'paid', report: () => undefined };
  };
  return { routes: new CreditRoutes(worldOf({ place }), stored, place, storeHere), sent, here };
}

describe('a credit in a cluster', () => {
  it('SHA-9 a credit in a cluster goes to shard 0, and from there to the shard of its account', async () => {
    const { routes, sent } = routesAt(3, async () => 'unmatched');
    expect((await routes.receive('till', credit, true)).result).toBe('unmatched');
    expect(sent).toEqual([[0, 'route', { source: 'till', credit, caughtUp: true }]]);
    const router = routesAt(0, async () => 'paid');
    expect(await router.routes.take('route', { source: 'till', credit, caughtUp: true })).toBe('paid');
    expect(router.sent.map(([shard, task]) => [shard, task])).toEqual(HOME === 0 ? [] : [[HOME, 'store']]);
    const home = routesAt(HOME, async () => 'paid');
    expect(await home.routes.take('store', { source: 'till', credit, caughtUp: true })).toBe('paid');
    expect(home.here).toEqual(['1']);
  });

  it.each([
    ['has paid it out', { 1: { payment_id: 'p' }, 2: { payment_id: null } }, ACCOUNT, 1],
    ['keeps it, unless its account is known by now', { 2: { payment_id: null } }, ACCOUNT, HOME],
    ['keeps it', { 2: { payment_id: null } }, 'unknown', 2],
  ])('SHA-9 goes to the shard that %s', async (_why, found, bankAccount, shard) => {
    const { routes, sent, here } = routesAt(0, async () => 'duplicate', found);
    await routes.receive('till', { ...credit, bankAccount }, false);
    expect(shard === 0 ? here : sent.map(([it]) => it)).toEqual(shard === 0 ? ['1'] : [shard]);
  });

  it('SHA-9 a credit waits for others of its amount, and is not held up by one that fails', async () => {
    const { promise, reject } = Promise.withResolvers<CreditResult>();
    const begun: string[] = [];
    const { routes } = routesAt(
      0,
      async ([, , { credit: it }]) => {
        begun.push(it.sourceId);
        return it.sourceId === '1' ? promise : 'paid';
      },
      { 4: { payment_id: 'p' } },
    );
    const first = routes.receive('till', credit, false);
    const second = routes.receive('till', { ...credit, sourceId: '2' }, false);
    await routes.receive('till', { ...credit, sourceId: '3', amount: 6_000 }, false);
    expect(begun).toEqual(['1', '3']);
    reject(new Error('the answer was lost'));
    await expect(first).rejects.toThrow('the answer was lost');
    expect((await second).result).toBe('paid');
    expect(begun).toEqual(['1', '3', '2']);
  });
});
