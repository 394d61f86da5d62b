import { describe, expect, it } from 'vitest';
import { type Clock, systemClock } from '../../src/lib/clock.ts';
import { reasonOf } from '../../src/lib/errors.ts';
import { FAULT_NAMES, type FaultName, type FaultOrder, faultKind } from '../../src/protocol/faults.ts';
import { eventually } from '../support/net.ts';
import { Market } from './faults-market.ts';
import { type TestGateway, testGateway } from './harness.ts';

/** Longer than a test: what is held so long goes on because its fault is ended, and for no other reason. */
const LONG_SECONDS = 600;
const LONG_MS = (LONG_SECONDS - 10) * 1000;

/** How a push may be answered while the fault stands, where that is not by success alone. */
const ANSWERS: Partial<Record<FaultName, string[]>> = {
  'box-offline': ['BOX_OFFLINE'],
  'push-lost': ['BOX_TIMEOUT'],
  'qr-amount': ['QR_MISMATCH'],
  'qr-account': ['QR_MISMATCH'],
  'paid-before': ['WITHDRAWN'],
  'link-cut': ['', 'BOX_OFFLINE'],
  'broker-killed': ['', 'BOX_OFFLINE', 'BOX_TIMEOUT'],
  'display-gone': ['DISPLAY_FAULT'],
  'disk-full': ['STORAGE_FAULT'],
};

/** What is one event for all three boxes, or none. */
const ONCE: readonly FaultName[] = ['link-cut', 'half-open', 'broker-killed', 'clock-skew', 'sync-swapped'];
/** What is held until the fault is ended: it stands for so long, however often it has happened. */
const HOLDING: readonly FaultName[] = [
  'service-slow',
  'box-slow',
  'push-late',
  'push-swapped',
  'paid-late',
  'partner-never',
  'sync-late',
  'sync-swapped',
];

/** A clock that knows how many long waits nobody has ended. */
class WatchedClock implements Clock {
  longWaits = 0;
  monotonicMs = systemClock.monotonicMs;
  wallMs = systemClock.wallMs;

  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (ms < LONG_MS) return systemClock.sleep(ms, signal);
    this.longWaits += 1;
    await systemClock.sleep(ms, signal);
    this.longWaits -= 1;
  }
}

function orderOf(fault: FaultName, times: number): FaultOrder {
  const { timing, seconds } = faultKind(fault);
  if (timing === 'late') return { fault, times, seconds: LONG_SECONDS };
  return seconds === undefined ? { fault, times } : { fault, seconds: LONG_SECONDS };
}

/** Fails by the name of the fault. */
async function named(fault: FaultName, work: Promise<void>): Promise<void> {
  await work.catch((error: unknown) => {
    throw new Error(`${fault}: ${reasonOf(error)}`, { cause: error });
  });
}

describe('with boxes on both transports', () => {
  // On SQLite only: faults-storm.long.test.ts has every fault on either engine.
  const open = async () => {
    const clock = new WatchedClock();
    const gateways: TestGateway[] = [];
    const market = await Market.open(async (url) => {
      const config = { callbackRetryWaitsMs: [20, 20, 20, 20] };
      const gateway = await testGateway({ clock, callback: { url }, config });
      gateways.push(gateway);
      return gateway;
    });
    const happened = (fault: string) =>
      gateways.flatMap((it) => it.logged('fault-triggered')).filter((it) => it.fault === fault).length;
    // The store waits an hour from the end of its first pruning on.
    await eventually('the wait for the next pruning', () => clock.longWaits > 0);
    return { market, clock, happened };
  };

  const gatewayFaults = FAULT_NAMES.filter((it) => faultKind(it).place !== 'box');
  const boxFaults = FAULT_NAMES.filter((it) => faultKind(it).place === 'box');

  it('FLT-11 each fault of the gateway is over with all that it holds as soon as it is ended', {
    timeout: 300_000,
  }, async () => {
    const { market, clock, happened } = await open();
    const { stalls } = market;
    const waitsBefore = clock.longWaits;
    const tryOut = async (fault: FaultName, index: number) => {
      const { id } = await market.order(orderOf(fault, stalls.length));
      const trades = Promise.all(stalls.map((at) => market.trade(at)));
      const times = ONCE.includes(fault) ? 1 : stalls.length;
      await eventually(`${fault} ${times} times`, () => happened(fault) >= times);
      if (HOLDING.includes(fault)) expect(await market.standing()).toMatchObject([{ fault }]);
      await market.end(index % 2 === 0 ? id : undefined);
      expect(await market.standing()).toEqual([]);
      const answers = (await trades).map((it) => it.sold);
      const right = ANSWERS[fault] ?? [''];
      for (const answer of answers)
        expect({ fault, answer: right.includes(answer) || answer }).toEqual({ fault, answer: true });
      await market.expectRight({ twice: happened('sync-twice') });
      await Promise.all(stalls.map((at) => market.tradeFlawlessly(at)));
      expect({ fault, longWaits: clock.longWaits }).toEqual({ fault, longWaits: waitsBefore });
    };
    for (const [index, fault] of gatewayFaults.entries()) await named(fault, tryOut(fault, index));
    await market.expectRight({ twice: happened('sync-twice') });
  });

  it('FLT-11 each fault of a box is over as soon as it is ended', async () => {
    const { market } = await open();
    const { stalls } = market;
    const tryOut = async (fault: FaultName) => {
      const at = (code: string) => stalls.find((it) => it.code === code)?.box.origin;
      for (const { code } of stalls) {
        const ordered = await fetch(`${at(code)}/_mock/faults/${fault}?seconds=${LONG_SECONDS}`, { method: 'POST' });
        expect(ordered.status).toBe(201);
      }
      const trades = await Promise.all(stalls.map((it) => market.trade(it)));
      for (const { sold } of trades) expect({ fault, sold }).toEqual({ fault, sold: ANSWERS[fault]?.[0] ?? '' });
      for (const { code } of stalls) await fetch(`${at(code)}/_mock/faults`, { method: 'DELETE' });
      await market.expectRight();
      await Promise.all(stalls.map((it) => market.tradeFlawlessly(it)));
    };
    for (const fault of boxFaults) await named(fault, tryOut(fault));
    await market.expectRight();
  });
});
