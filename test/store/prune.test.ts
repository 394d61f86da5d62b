import { describe, expect, it } from 'vitest';
import { Pruner } from '../../src/gateway/store/pruner.ts';
import type { Store } from '../../src/gateway/store/store.ts';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';
import { keptLog } from '../support/kept-log.ts';
import { eventually } from '../support/net.ts';
import { ENGINES } from '../support/stores.ts';
import { attempt, BOX, opened, order, pay, push } from './rows.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const NOW_MS = 1000 * DAY_MS;
const callback = (id: string) => ({ id, url: 'u', body: 'b' });
const told = [{ terminal_code: BOX, push_id: null, told_at_ms: null }];

async function prune(store: Store, limits?: { keptMs: number; keptMax: number }) {
  const pruned = { pushes: 0, orders: 0, payments: 0, credits: 0, qrCodes: 0, batchMax: 0 };
  for await (const { kind, deleted } of store.prune(NOW_MS, limits)) {
    pruned[kind] += deleted;
    pruned.batchMax = Math.max(pruned.batchMax, deleted);
  }
  return pruned;
}
const orderIds = async (store: Store) => (await store.orders.newest(1000)).map((it) => it.id).toSorted();
const pushIds = async (store: Store, orderRef: string) => (await store.orders.pushesOf([orderRef])).map((it) => it.id);
const paymentIds = async (store: Store) => (await store.payments.newest(1000)).map((it) => it.id).toSorted();

describe.each(ENGINES)('pruning on $name', ({ missing, places }) => {
  const place = places();

  describe.skipIf(missing)('deletes', () => {
    it('pruning deletes what is older than 30 days, with all that hangs on it, and leaves the rest', async () => {
      const store = await opened(await place());
      for (const [id, days] of [
        ['old', 31],
        ['new', 29],
      ] as const) {
        const atMs = NOW_MS - days * DAY_MS;
        await store.orders.startPush(push(`p ${id}`, id, { created_at_ms: atMs }), order(id, { created_at_ms: atMs }));
        await store.qrCodes.add(id, 'qr', atMs);
        await pay(store, `t ${id}`, { orderRef: id, atMs, notices: told, callback: callback(`c ${id}`) });
        await store.payments.report(`t ${id}`, BOX, true, atMs);
        const after = { url: 'u', status: 'delivered', warning: null, tries: 1, next_at_ms: 9 } as const;
        await store.callbacks.addAttempt(attempt(`a ${id}`, `c ${id}`), { tries: 0 }, after);
      }
      expect(await prune(store)).toMatchObject({ orders: 1, payments: 1, qrCodes: 1 });
      expect(await orderIds(store)).toEqual(['new']);
      expect((await store.orders.pushesOf(['old', 'new'])).map((it) => it.id)).toEqual(['p new']);
      expect([await store.qrCodes.find('old'), await store.qrCodes.find('new')]).toEqual([undefined, 'qr']);
      expect(await paymentIds(store)).toEqual(['t new']);
      const payments = ['t old', 't new'];
      expect((await store.payments.noticesOf(payments)).map((it) => it.payment_id)).toEqual(['t new']);
      expect((await store.callbacks.ofPayments(payments)).map((it) => it.id)).toEqual(['c new']);
      expect((await store.callbacks.attemptsOf(['c old', 'c new'], 100)).map((it) => it.id)).toEqual(['a new']);
      expect(await prune(store)).toMatchObject({ orders: 0, payments: 0, qrCodes: 0 });
    });

    it('pruning deletes the oldest beyond a number, over many batches', async () => {
      const store = await opened(await place());
      for (let i = 0; i < 250; i += 1) {
        await store.orders.add(order(`o${i}`, { created_at_ms: NOW_MS }));
        await store.qrCodes.add(`q${i}`, 'qr', NOW_MS);
        await pay(store, `t${i}`, { orderRef: `o${i}`, atMs: NOW_MS });
      }
      const gone = { pushes: 0, orders: 247, payments: 247, credits: 0, qrCodes: 247, batchMax: 20 };
      expect(await prune(store, { keptMs: DAY_MS, keptMax: 3 })).toEqual(gone);
      expect(await orderIds(store)).toEqual(['o247', 'o248', 'o249']);
      expect(await paymentIds(store)).toEqual(['t247', 't248', 't249']);
    });

    it('pruning deletes no order that a box may still show, whatever its age and number', async () => {
      const store = await opened(await place());
      for (const id of ['shown', 'sent', 'cancelled', 'unsure', 'over', 'ended']) {
        const expires_at_ms = NOW_MS - DAY_MS + (id === 'over' ? 0 : 1);
        await store.orders.startPush(push(id, id, { expires_at_ms }), order(id));
      }
      await store.orders.confirmPush('shown', BOX, 'shown', 3);
      await store.orders.cancel('cancelled', 3);
      await store.orders.failPush('unsure', BOX, 'BOX_TIMEOUT', 3, false);
      await store.orders.endPush('ended', BOX, 'dismissed', 3);
      await prune(store, { keptMs: 0, keptMax: 0 });
      expect(await orderIds(store)).toEqual(['cancelled', 'sent', 'shown', 'unsure']);
      expect(await store.orders.pushesOf(['shown', 'over', 'ended'])).toHaveLength(1);
    });

    it('pruning deletes the pushes of an order that is asked for again and again, but not the newest', async () => {
      const store = await opened(await place());
      for (const [n, days] of [31, 31, 29, 1].entries()) {
        const atMs = NOW_MS - days * DAY_MS;
        const times = { created_at_ms: atMs, expires_at_ms: atMs + HOUR_MS };
        await store.orders.startPush(push(`p${n}`, 'a', times), n === 0 ? order('a') : undefined);
        await store.orders.endPush(`p${n}`, BOX, 'expired', atMs + HOUR_MS);
      }
      expect(await prune(store)).toMatchObject({ pushes: 2, orders: 0 });
      expect(await pushIds(store, 'a')).toEqual(['p2', 'p3']);
      await prune(store, { keptMs: 2 * DAY_MS, keptMax: 1 });
      expect(await pushIds(store, 'a')).toEqual(['p3']);
    });

    it('pruning deletes the oldest pushes beyond a number, but none that a box may still show or that an order goes by', async () => {
      const store = await opened(await place());
      const over = NOW_MS - 2 * DAY_MS;
      const expiries: Record<number, number> = { 1: NOW_MS + 1, 2: over, 3: NOW_MS - 31 * DAY_MS, 4: NOW_MS };
      for (let n = 0; n < 250; n += 1) {
        const times = { created_at_ms: over, expires_at_ms: expiries[n] ?? over };
        await store.orders.startPush(push(`p${n}`, 'a', times), n === 0 ? order('a') : undefined);
        if (n === 0) await store.orders.confirmPush('p0', BOX, 'shown', over);
        if (n < 1 || n > 3) await store.orders.endPush(`p${n}`, BOX, 'replaced', over);
      }
      const pruned = await prune(store, { keptMs: 30 * DAY_MS, keptMax: 3 });
      expect(pruned).toMatchObject({ pushes: 243, orders: 0, batchMax: 20 });
      expect(await pushIds(store, 'a')).toEqual(['p0', 'p1', 'p2', 'p4', 'p247', 'p248', 'p249']);
      await prune(store, { keptMs: 0, keptMax: 0 });
      expect(await pushIds(store, 'a')).toEqual(['p0', 'p1', 'p4', 'p249']);
    });

    it('pruning deletes no payment that a box has not reported or that a partner is to be told, nor stops at many of them', async () => {
      const store = await opened(await place());
      for (let i = 0; i < 110; i += 1) await pay(store, `unreported ${i}`, { notices: told });
      await pay(store, 'pending', { callback: callback('c1') });
      await pay(store, 'over');
      expect(await prune(store, { keptMs: 0, keptMax: 0 })).toMatchObject({ payments: 1 });
      expect(await paymentIds(store)).toHaveLength(111);
      expect((await store.callbacks.nextDue('demo', 10)).map((it) => it.id)).toEqual(['c1']);
    });

    it('pruning deletes no payment by its age whose callback has failed, but by its number, which it logs', async () => {
      const store = await opened(await place());
      for (const id of ['a', 'b']) await pay(store, id, { callback: callback(`c ${id}`) });
      const after = { url: 'u', status: 'failed', warning: null, tries: 1, next_at_ms: 9 } as const;
      for (const id of ['a', 'b']) await store.callbacks.addAttempt(attempt(`a ${id}`, `c ${id}`), { tries: 0 }, after);
      expect(await prune(store)).toMatchObject({ payments: 0 });
      const told = [];
      for await (const it of store.prune(NOW_MS, { keptMs: DAY_MS, keptMax: 1 })) told.push(it);
      expect(told).toContainEqual(expect.objectContaining({ kind: 'payments', deleted: 1, undelivered: 1 }));
      expect(await paymentIds(store)).toEqual(['b']);
    });

    it.each([
      ['at a start, 31 days ahead', 31 * DAY_MS, 0],
      ['while it runs, by two days', 0, 2 * DAY_MS],
    ])('nothing by a calendar that has jumped: %s', async (_name, atStartMs, laterMs) => {
      const given = await place();
      const store = await opened(given);
      const [young, old] = [NOW_MS - 29 * DAY_MS, NOW_MS - 31 * DAY_MS];
      for (const [id, created_at_ms] of [
        ['old', old],
        ['young', young],
        ['new', NOW_MS],
      ] as const) {
        await store.orders.add(order(id, { created_at_ms }));
      }
      const { log, lines } = keptLog();
      const clock = new VirtualClock(NOW_MS);
      const calendar = { aheadMs: atStartMs };
      const skewed = {
        monotonicMs: () => clock.monotonicMs(),
        wallMs: () => clock.wallMs() + calendar.aheadMs,
        sleep: (ms: number, signal?: AbortSignal) => clock.sleep(ms, signal),
      };
      const pruner = new Pruner({ store, clock: skewed, log, isOurs: async () => true });
      pruner.start();
      const round = () =>
        eventually('a round', async () => {
          if (clock.sleeping()[0] === 50) await clock.advance(50);
          return clock.sleeping()[0] === HOUR_MS;
        });
      await round();
      expect(await orderIds(store)).toEqual(['new', 'young']);
      calendar.aheadMs += laterMs;
      for (let n = 0; n < 3; n += 1) {
        await clock.advance(HOUR_MS);
        await round();
      }
      await pruner.close();
      expect(await orderIds(store)).toEqual(['new', 'young']);
      expect(lines.filter((it) => it.event === 'clock-jumped')).toHaveLength(1);
    });

    it('pruning deletes nothing that was made while the calendar was set back', async () => {
      const store = await opened(await place());
      for (const [id, days] of [
        ['old', 32],
        ['right', 1],
        ['wrong', 32],
      ] as const) {
        const atMs = NOW_MS - days * DAY_MS;
        await store.orders.startPush(push(`p ${id}`, id, { created_at_ms: atMs }), order(id, { created_at_ms: atMs }));
        await pay(store, `t ${id}`, { orderRef: id, atMs });
      }
      expect(await prune(store)).toMatchObject({ orders: 1, payments: 1 });
      expect(await orderIds(store)).toEqual(['right', 'wrong']);
      expect(await paymentIds(store)).toEqual(['t right', 't wrong']);
      expect(await pushIds(store, 'wrong')).toEqual(['p wrong']);
    });

    it('pruning runs at the start and every hour, and goes on after a failure', async () => {
      const given = await place();
      const first = await opened(given);
      const clock = new VirtualClock(NOW_MS);
      await first.trustedTimeMs(NOW_MS);
      await first.orders.add(order('before', { created_at_ms: 1 }));
      const { log, lines } = keptLog();
      let rounds = 0;
      const store = {
        ...first,
        prune: (atMs: number) => {
          rounds += 1;
          if (rounds === 2) throw new Error('away');
          return first.prune(atMs);
        },
      };
      const pruner = new Pruner({ store, clock, log, isOurs: async () => true });
      pruner.start();
      await eventually('the first round', () => clock.sleeping()[0] === 50);
      await clock.advance(50);
      await eventually('the first wait', () => clock.sleeping()[0] === HOUR_MS);
      expect(await orderIds(first)).toEqual([]);
      await first.orders.add(order('later', { created_at_ms: 1 }));
      await clock.advance(HOUR_MS);
      await eventually('the failure', () => lines.some((it) => it.event === 'store-not-pruned'));
      await clock.advance(HOUR_MS);
      await eventually('the third round', async () => (await orderIds(first)).length === 0);
      await pruner.close();
      expect(clock.sleeping()).toEqual([]);
    });
  });
});
