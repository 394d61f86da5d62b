import { describe, expect, it } from 'vitest';
import { FAULT_NAMES, type FaultName, type FaultOrder, faultKind } from '../../src/protocol/faults.ts';
import { type Seeded, seeded } from '../support/seeded.ts';
import { ENGINES } from '../support/stores.ts';
import { Market } from './faults-market.ts';
import { type TestGateway, testGateway } from './harness.ts';

const ORDERS = 100;
/** Each kind once, and some again. */
const FAULTS = 50;
const SEED = 7;
const AT_GATEWAY = FAULT_NAMES.filter((it) => faultKind(it).place !== 'box');

/** A copy of the list in an order of chance. */
function shuffled<T>(list: readonly T[], chance: Seeded): T[] {
  const keys = new Map(list.map((it) => [it, chance.fraction()]));
  return list.toSorted((a, b) => (keys.get(a) ?? 0) - (keys.get(b) ?? 0));
}

/** Short, so that many come and go while the orders run. */
function faultOf(fault: FaultName, chance: Seeded, codes: readonly string[]): FaultOrder {
  const { timing, isOfAll = false, seconds: usual } = faultKind(fault);
  const seconds = 0.05 + chance.below(450) / 1000;
  const box = isOfAll || chance.chance(0.5) ? {} : { box: codes[chance.below(codes.length)] ?? '' };
  const often = timing === 'state' || chance.chance(0.2) ? {} : { times: 1 + chance.below(3) };
  const lasts = timing !== undefined || usual !== undefined || often.times === undefined ? { seconds } : {};
  return { fault, ...box, ...often, ...lasts, chance: 0.3 + chance.fraction() * 0.7, seed: chance.below(1000) };
}

describe.each(ENGINES)('faults that come and go at random, on $name', ({ missing, places }) => {
  const place = places();

  it.skipIf(missing)(`FLT-11 faults at random leave the money of ${ORDERS} orders right (seed ${SEED})`, async () => {
    const gateways: TestGateway[] = [];
    const market = await Market.open(async (url) => {
      const { dataDir, databaseUrl } = await place();
      const callbackRetryWaitsMs = Array.from({ length: 15 }, () => 20);
      const config = { databaseUrl, callbackRetryWaitsMs, confirmTimeoutMs: 1_500 };
      const gateway = await testGateway({ dataDir, callback: { url }, config });
      gateways.push(gateway);
      return gateway;
    });
    const happened = (fault: string) =>
      gateways.flatMap((it) => it.logged('fault-triggered')).filter((it) => it.fault === fault).length;
    const chance = seeded(SEED);
    const { stalls } = market;
    const codes = stalls.map((it) => it.code);
    const ordered: string[] = [];
    const kinds = shuffled(AT_GATEWAY, chance);
    let begun = 0;
    const meddle = async (n: number) => {
      if (n % (ORDERS / FAULTS) === 0) {
        const fault = kinds[ordered.length % kinds.length] ?? 'push-lost';
        ordered.push((await market.order(faultOf(fault, chance, codes))).id);
      } else if (chance.chance(0.2)) {
        await market.end(chance.chance(0.1) ? undefined : ordered[chance.below(ordered.length)]);
      }
    };
    const lane = async (at: (typeof stalls)[number]) => {
      while (begun < ORDERS) {
        const n = begun;
        begun += 1;
        await meddle(n);
        await market.trade(at);
      }
    };
    await Promise.all([...stalls, ...stalls].map(lane));
    await market.end();
    expect(await market.standing()).toEqual([]);
    await market.expectRight({ twice: happened('sync-twice') });
    const { payments } = await market.books();
    const due = market.promised.length + happened('paid-twice');
    expect(payments.length).toBeGreaterThanOrEqual(due);
    expect(payments.length).toBeLessThanOrEqual(due + happened('paid-before'));
    expect(ordered).toHaveLength(FAULTS);
    await Promise.all(stalls.map((at) => market.tradeFlawlessly(at)));
    await market.expectRight({ twice: happened('sync-twice') });
  });
});
