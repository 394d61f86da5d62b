import { PassThrough } from 'node:stream';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { BoxApi, BoxStatus, Journal } from '../../src/device/agent/contract.ts';
import { Loop } from '../../src/device/agent/loop.ts';
import { notifyServiceManager, statusLine } from '../../src/device/agent/systemd.ts';
import { initialState } from '../../src/device/box/restore.ts';
import { createLogger } from '../../src/lib/log.ts';
import type { SystemdNotification } from '../../src/lib/systemd.ts';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';
import { registered } from '../box/events.ts';
import { at, CONFIG } from '../box/samples.ts';
import { only } from '../gateway/stage-records.ts';

const WATCHDOG_MS = 30_000;
const STATUS = {
  state: 'idle',
  online: true,
  order: null,
  fault: null,
  link: { reason: null },
} as unknown as BoxStatus;

/** A real loop over a disk that may hang, and what the service manager was told of it. */
async function watchedLoop({ watchdogMs }: { watchdogMs: number | undefined } = { watchdogMs: WATCHDOG_MS }) {
  const clock = new VirtualClock();
  const hung = Promise.withResolvers<void>();
  const journal: Journal = {
    load: () => [],
    append: () => hung.promise,
    reopen: () => [],
    status: () => ({ ok: true, reason: null, complete: true, setAside: [] }),
    close: () => undefined,
  };
  const log = createLogger(new PassThrough(), clock, 'text');
  const loop = new Loop(initialState(CONFIG, at(0)), { clock, log, journal });
  const told: SystemdNotification[] = [];
  let status = STATUS;
  const listeners = new Set<() => void>();
  const box = only<BoxApi>({
    status: () => status,
    onChange: (listener: () => void) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  });
  const stopping = new AbortController();
  const run = () => void loop.run();
  const ended = notifyServiceManager(
    { watchdogMs, notify: async (notice) => void told.push(notice) },
    { box, ping: () => loop.ping() },
    clock,
    stopping.signal,
  );
  onTestFinished(() => {
    stopping.abort();
    hung.resolve();
    loop.stop();
  });
  await clock.advance(0);
  const change = (to: Partial<BoxStatus>) => {
    status = { ...status, ...to };
    for (const listener of listeners) listener();
  };
  const feeds = () => told.filter(({ WATCHDOG }) => WATCHDOG === '1').length;
  return { clock, loop, run, told, feeds, change, stopping, hung, ended };
}

describe('what the service manager is told', () => {
  it('the service manager gets READY only once the loop runs', async () => {
    const { clock, run, told } = await watchedLoop();
    await clock.advance(60_000);
    expect(told).toEqual([{ STATUS: 'idle; online' }]);
    run();
    await clock.advance(0);
    expect(told.at(-1)).toEqual({ READY: '1', WATCHDOG: '1' });
  });

  it('the service manager gets a watchdog ping at half of the time that it allows', async () => {
    const { clock, run, feeds } = await watchedLoop();
    run();
    await clock.advance(0);
    expect(feeds()).toBe(1);
    await clock.advance(WATCHDOG_MS / 2 - 1);
    expect(feeds()).toBe(1);
    await clock.advance(1);
    expect(feeds()).toBe(2);
    await clock.advance(WATCHDOG_MS * 10);
    expect(feeds()).toBe(22);
  });

  it('the service manager gets no ping while the loop hangs in its disk, although the event loop runs', async () => {
    const { clock, loop, run, feeds, hung } = await watchedLoop();
    run();
    await clock.advance(0);
    loop.dispatch(registered);
    await clock.advance(0);
    const before = feeds();
    await clock.advance(WATCHDOG_MS * 10);
    expect(feeds()).toBe(before);
    hung.resolve();
    await clock.advance(WATCHDOG_MS);
    expect(feeds()).toBeGreaterThan(before);
  });

  it('the service manager gets pings while more events wait than the inbox holds, as long as they are processed', async () => {
    const { clock, loop, run, feeds } = await watchedLoop();
    run();
    await clock.advance(0);
    await clock.advance(WATCHDOG_MS / 2 - 1);
    for (let n = 0; n < 3_000; n += 1) loop.dispatch({ type: 'tick' });
    const before = feeds();
    await clock.advance(WATCHDOG_MS / 2);
    expect(feeds()).toBeGreaterThan(before);
  });

  it('the service manager gets no ping where it does not watch', async () => {
    const { clock, run, told, ended } = await watchedLoop({ watchdogMs: undefined });
    run();
    await clock.advance(0);
    await ended;
    await clock.advance(WATCHDOG_MS * 3);
    expect(told.filter(({ WATCHDOG }) => WATCHDOG)).toHaveLength(1);
  });

  it('the service manager gets a status once for each change, and none once the box stops', async () => {
    const { clock, run, told, change, stopping } = await watchedLoop({ watchdogMs: undefined });
    run();
    await clock.advance(0);
    told.length = 0;
    change({});
    change({ online: false, link: { reason: 'connect ECONNREFUSED' } as BoxStatus['link'] });
    change({});
    stopping.abort();
    change({ online: true });
    expect(told).toEqual([{ STATUS: 'idle; offline: connect ECONNREFUSED' }]);
  });

  it('the status for the service manager names the order and the fault', () => {
    const order = { orderId: 'DH1', amount: 50_000 } as BoxStatus['order'];
    expect(statusLine({ ...STATUS, state: 'showing', order })).toBe('showing 50000 VND, order DH1; online');
    const fault = { code: 'DISPLAY_FAULT', reason: 'no such device' };
    expect(statusLine({ ...STATUS, state: 'fault', fault })).toBe('fault; online; DISPLAY_FAULT: no such device');
  });
});
