import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ENGINES } from '../support/stores.ts';
import { attempt, BOX, opened, order, pay, push } from './rows.ts';

describe.each(ENGINES)('the store on $name', ({ missing, places }) => {
  const place = places();

  describe.skipIf(missing)('keeps', () => {
    it('the store keeps everything over a restart, in its order', async () => {
      const given = await place();
      const made = { ...given, dataDir: join(given.dataDir, 'made', 'anew') };
      const first = await opened(made);
      await first.orders.add(order('a'));
      await first.orders.startPush(push('p1', 'b'), order('b'));
      expect(await first.setting('key', () => 'one')).toBe('one');
      await first.close();
      const second = await opened(made);
      await second.orders.add(order('c'));
      const orders = await second.orders.newest(10);
      expect(orders.map((it) => [it.id, it.status, it.amount])).toEqual([
        ['c', 'created', 9_999_999_999_999],
        ['b', 'pushed', 9_999_999_999_999],
        ['a', 'created', 9_999_999_999_999],
      ]);
      expect(await second.setting('key', () => 'two')).toBe('one');
    });

    it('the store keeps every kind of number and text as it was', async () => {
      const store = await opened(await place());
      const content = 'Đã nhận "50.000 ₫" 😀 \\';
      await store.orders.add(order('a', { content, amount: Number.MAX_SAFE_INTEGER }));
      await pay(store, 't', {
        orderRef: 'a',
        notices: [{ terminal_code: BOX, push_id: null, told_at_ms: null }],
      });
      expect(await store.orders.find('a')).toMatchObject({ content, amount: Number.MAX_SAFE_INTEGER, paid_at_ms: 5 });
      expect(await store.payments.noticesOf(['t'])).toMatchObject([
        {
          payment_id: 't',
          terminal_code: BOX,
          push_id: null,
          created_at_ms: 5,
          told_at_ms: null,
          reported_at_ms: null,
          recorded: null,
        },
      ]);
    });

    it('the store keeps a payment whole or not at all', async () => {
      const store = await opened(await place());
      await store.orders.add(order('a'));
      const told = [BOX, BOX].map((terminal_code) => ({ terminal_code, push_id: null, told_at_ms: null }));
      await expect(pay(store, 't', { orderRef: 'a', notices: told })).rejects.toThrow();
      expect(await store.payments.newest(10)).toEqual([]);
      expect((await store.orders.find('a'))?.status).toBe('created');
      await pay(store, 't', { orderRef: 'a' });
      expect((await store.orders.find('a'))?.status).toBe('paid');
    });

    it('the store keeps an order and the QR of its picture, both or neither', async () => {
      const store = await opened(await place());
      await store.orders.add(order('a'), { qrRef: 'ref a' });
      expect(await store.qrCodes.find('ref a')).toBe('qr-a');
      await expect(store.orders.add(order('a'), { qrRef: 'ref b' })).rejects.toThrow();
      expect(await store.qrCodes.find('ref b')).toBeUndefined();
      await expect(store.orders.add(order('b'), { qrRef: 'ref a' })).rejects.toThrow();
      expect(await store.orders.find('b')).toBeUndefined();
    });

    it('the store keeps nothing of a push to an order that is not there', async () => {
      const store = await opened(await place());
      await expect(store.orders.startPush(push('p', 'gone'), undefined)).rejects.toThrow('order');
      expect(await store.orders.pushesOf(['gone'])).toEqual([]);
    });

    it('the store keeps the attempts of each callback in their order, and none of one that is not there', async () => {
      const store = await opened(await place());
      for (const id of ['c1', 'c2']) await pay(store, `of ${id}`, { callback: { id, url: 'u', body: 'b' } });
      const after = { url: 'u', status: 'pending', warning: null, tries: 1, next_at_ms: 9 } as const;
      for (const [id, of] of [
        ['a', 'c1'],
        ['b', 'c2'],
        ['c', 'c1'],
        ['d', 'none'],
      ] as const) {
        await store.callbacks.addAttempt(attempt(id, of), { tries: id === 'c' ? 1 : 0 }, after);
      }
      const rows = await store.callbacks.attemptsOf(['c1', 'none'], 100);
      expect(rows.map((it) => it.id)).toEqual(['a', 'c']);
      expect(await store.callbacks.nextDue('demo', 10)).toEqual([
        { id: 'c1', tries: 1, next_at_ms: 9 },
        { id: 'c2', tries: 1, next_at_ms: 9 },
      ]);
      expect((await store.callbacks.attemptsOf(['c1', 'none'], 1)).map((it) => it.id)).toEqual(['c']);
      await pay(store, 'of c3', { callback: { id: 'c3', url: 'u', body: 'b' } });
      expect(await store.callbacks.pendingPartners()).toEqual([{ partner: 'demo', next_at_ms: 5 }]);
    });

    it('SYN-5 an attempt that fails late changes no callback that another one has delivered, or that is due again', async () => {
      const store = await opened(await place());
      for (const id of ['c1', 'c2']) await pay(store, `of ${id}`, { callback: { id, url: 'u', body: 'b' } });
      const [delivered, deferred] = [
        { url: 'u', status: 'delivered', warning: null, tries: 0 },
        { url: 'u', status: 'pending', warning: 'late', tries: 1, next_at_ms: 99 },
      ] as const;
      expect(await store.callbacks.addAttempt(attempt('a', 'c1'), { tries: 0 }, delivered)).toBe('delivered');
      await store.callbacks.requeue({ status: 'pending' }, 0, 9, 8);
      for (const id of ['c1', 'c2']) await store.callbacks.addAttempt(attempt(`b ${id}`, id), { tries: 0 }, deferred);
      expect(await store.callbacks.find('c1')).toMatchObject({ status: 'delivered', warning: null, tries: 0 });
      expect(await store.callbacks.find('c2')).toMatchObject({ status: 'pending', warning: null, next_at_ms: 8 });
      expect((await store.callbacks.attemptsOf(['c1', 'c2'], 9)).map((it) => it.id)).toEqual(['a', 'b c2', 'b c1']);
      expect(await store.callbacks.addAttempt(attempt('d', 'none'), { tries: 0 }, delivered)).toBeUndefined();
    });

    it('SYN-5 the store keeps the callbacks due to each partner, and has what failed retried, part by part', async () => {
      const store = await opened(await place());
      const ids = ['c1', 'c2', 'c3', 'c4'];
      for (const id of ids) await pay(store, `of ${id}`, { callback: { id, url: 'u', body: 'b' } });
      for (const id of ids.slice(1)) {
        await store.callbacks.addAttempt(
          attempt(`a ${id}`, id),
          { tries: 0 },
          { url: 'u', status: 'failed', tries: 7 },
        );
      }
      expect(await store.callbacks.backlog()).toEqual({
        partners: [{ partner: 'demo', waiting: 1, failed: 3 }],
        oldestWaitingAtMs: 5,
      });
      expect((await store.callbacks.neverTried('demo', 10)).map((it) => it.id)).toEqual(['c1']);
      expect((await store.callbacks.newest(2, undefined, 'failed')).map((it) => it.id)).toEqual(['c4', 'c3']);
      expect((await store.callbacks.newest(2, 'c3', 'failed')).map((it) => it.id)).toEqual(['c2']);
      const failed = { status: 'failed', partner: 'demo', fromMs: 5, toMs: 6 } as const;
      for (const other of [{ partner: 'other' }, { fromMs: 6 }, { toMs: 5 }]) {
        expect((await store.callbacks.requeue({ ...failed, ...other }, 0, 9, 8)).partners).toEqual([]);
      }
      const first = await store.callbacks.requeue(failed, 0, 2, 8);
      expect(first.partners).toEqual(['demo', 'demo']);
      expect((await store.callbacks.requeue(failed, first.after ?? 0, 2, 8)).partners).toEqual(['demo']);
      expect(await store.callbacks.requeue(failed, 0, 2, 8)).toEqual({ partners: [], after: undefined });
      expect(await store.callbacks.nextDue('demo', 2)).toEqual([
        { id: 'c1', tries: 0, next_at_ms: 5 },
        { id: 'c2', tries: 1, next_at_ms: 8 },
      ]);
    });

    it('the store keeps one first report of each payment, whoever repeats it at once', async () => {
      const store = await opened(await place());
      await pay(store, 't', { notices: [{ terminal_code: BOX, push_id: null, told_at_ms: null }] });
      const reports = Array.from({ length: 5 }, () => store.payments.report('t', BOX, true, 6));
      expect((await Promise.all(reports)).toSorted()).toEqual(['first', ...Array(4).fill('repeated')]);
      expect(await store.payments.report('t', 'VVB000002', true, 6)).toBe(undefined);
      expect((await store.payments.takeUnreported(BOX, 7)).notices).toEqual([]);
    });
  });

  describe.skipIf(missing)('decides', () => {
    it('the store finds the order of a push, even after a newer push replaced it', async () => {
      const store = await opened(await place());
      await store.orders.startPush(push('p1', 'a'), order('a'));
      await store.orders.startPush(push('p2', 'a'), undefined);
      expect([await store.orders.idByPush('p1'), await store.orders.idByPush('p2')]).toEqual(['a', 'a']);
      expect(await store.orders.idByPush('unknown')).toBeUndefined();
    });

    it('a paid order stays paid, however its push ends', async () => {
      const store = await opened(await place());
      await store.orders.startPush(push('p', 'a'), order('a'));
      await pay(store, 't', { orderRef: 'a', notices: [{ terminal_code: BOX, push_id: 'p', told_at_ms: null }] });
      expect(await store.orders.confirmPush('p', BOX, 'shown', 6)).toBe(false);
      expect(await store.orders.endPush('p', BOX, 'replaced', 7)).toBe(true);
      expect((await store.orders.find('a'))?.status).toBe('paid');
    });

    it('a paid order stays paid after a cancellation or another push', async () => {
      const store = await opened(await place());
      await store.orders.add(order('a'));
      await pay(store, 't', { orderRef: 'a' });
      const status = async () => (await store.orders.find('a'))?.status;
      expect(await store.orders.cancel('a', 6)).toBeUndefined();
      expect(await status()).toBe('paid');
      await store.orders.startPush(push('p', 'a'), undefined);
      expect(await status()).toBe('paid');
      const before = await store.orders.find('a');
      expect(await store.orders.confirmPush('p', BOX, 'shown', 6)).toBe(true);
      const shown = { shown_on: BOX, shown_push_id: 'p', checksum: expect.any(String) };
      expect(await store.orders.find('a')).toEqual({ ...before, ...shown });
      expect(await store.orders.endPush('p', BOX, 'expired', 7)).toBe(true);
      expect(await status()).toBe('paid');
    });

    it.each(['expired', 'dismissed'] as const)(
      'that an order that is %s stays so, although it is cancelled',
      async (how) => {
        const store = await opened(await place());
        await store.orders.startPush(push('p', 'a'), order('a'));
        await store.orders.endPush('p', BOX, how, 4);
        const before = await store.orders.find('a');
        expect(before?.status).toBe(how);
        expect(await store.orders.cancel('a', 6)).toEqual({ hasChanged: false, withdrawn: [] });
        expect(await store.orders.find('a')).toEqual(before);
      },
    );

    it('a cancellation takes each open push away once', async () => {
      const store = await opened(await place());
      await store.orders.startPush(push('p', 'a'), order('a'));
      await store.orders.startPush(push('q', 'a', { terminal_code: 'VVB000002' }), undefined);
      await store.orders.endPush('q', 'VVB000002', 'expired', 4);
      const withdrawn = [{ id: 'p', terminal_code: BOX }];
      expect(await store.orders.cancel('a', 6)).toEqual({ hasChanged: true, withdrawn });
      expect((await store.orders.find('a'))?.status).toBe('expired');
      expect(await store.orders.cancel('a', 7)).toEqual({ hasChanged: false, withdrawn: [] });
      await store.orders.startPush(push('r', 'b'), order('b'));
      await store.orders.failPush('r', BOX, 'BOX_TIMEOUT', 5, false);
      expect(await store.orders.cancel('b', 6)).toEqual({ hasChanged: true, withdrawn: [] });
      expect(await store.orders.cancel('b', 7)).toEqual({ hasChanged: false, withdrawn: [] });
      expect(await store.orders.find('b')).toMatchObject({ status: 'cancelled', updated_at_ms: 6 });
    });

    it('SND-3 only the box of a push may accept it, and only once', async () => {
      const store = await opened(await place());
      const other = 'VVB000002';
      await store.orders.startPush(push('p', 'a'), order('a'));
      expect(await store.orders.confirmPush('p', other, 'accepted', 3)).toBe(false);
      expect(await store.orders.confirmPush('p', other, 'shown', 3)).toBe(false);
      expect(await store.orders.failPush('p', other, 'DISPLAY_FAULT', 3, true)).toBe(false);
      expect(await store.orders.endPush('p', other, 'expired', 3)).toBe(false);
      expect(await store.orders.find('a')).toMatchObject({ status: 'pushed', shown_on: null });
      expect(await store.orders.confirmPush('p', BOX, 'accepted', 4)).toBe(true);
      expect(await store.orders.confirmPush('p', BOX, 'accepted', 4)).toBe(false);
    });

    it('a cancelled order stays cancelled, whatever end its box reports', async () => {
      const store = await opened(await place());
      await store.orders.startPush(push('p', 'a'), order('a'));
      await store.orders.cancel('a', 3);
      expect(await store.orders.endPush('p', BOX, 'expired', 4)).toBe(true);
      expect(await store.orders.find('a')).toMatchObject({ status: 'cancelled' });
      expect(await store.orders.pushesOf(['a'])).toMatchObject([{ status: 'cancelled', ended_at_ms: 4 }]);
    });

    it('SND-4 a push that no request awaits has failed, at one box or at all boxes', async () => {
      const store = await opened(await place());
      for (const id of ['awaited', 'left']) await store.orders.startPush(push(id, id), order(id));
      await store.orders.startPush(push('other', 'other', { terminal_code: 'VVB000002' }), order('other'));
      const failures = async () => (await store.orders.newest(3)).map((it) => it.failure).toReversed();
      await store.orders.failUnfinished(4, 'displayed', { terminalCode: BOX, except: ['awaited'] });
      expect(await failures()).toEqual([null, 'BOX_OFFLINE', null]);
      await store.orders.failUnfinished(4, 'displayed');
      expect(await failures()).toEqual(['BOX_OFFLINE', 'BOX_OFFLINE', 'BOX_OFFLINE']);
    });

    it('an order follows only its newest push', async () => {
      const store = await opened(await place());
      await store.orders.startPush(push('p1', 'a'), order('a'));
      await store.orders.startPush(push('p2', 'a'), undefined);
      await store.orders.confirmPush('p2', BOX, 'shown', 3);
      expect(await store.orders.endPush('p1', BOX, 'replaced', 4)).toBe(true);
      expect(await store.orders.find('a')).toMatchObject({ status: 'shown', shown_push_id: 'p2' });
    });

    it('CBK-6 pays what a box shows, else what it is about to show, else the newest unpaid, else the newest paid', async () => {
      const store = await opened(await place());
      for (const id of ['shown', 'sent']) await store.orders.startPush(push(id, id), order(id));
      for (const id of ['old', 'new']) await store.orders.add(order(id));
      await store.orders.confirmPush('shown', BOX, 'shown', 3);
      const paid: (string | null)[] = [];
      for (let i = 0; i < 5; i += 1) paid.push((await pay(store, `t${i}`)).payment.order_ref);
      expect(paid).toEqual(['shown', 'sent', 'new', 'old', 'new']);
    });

    it('CBK-6 pays no order of another partner, although the account, the content and the amount are the same', async () => {
      const store = await opened(await place());
      await store.orders.add(order('own'));
      await store.orders.startPush(push('p', 'theirs'), order('theirs', { partner: 'other' }));
      await store.orders.confirmPush('p', BOX, 'shown', 3);
      expect((await pay(store, 't')).payment.order_ref).toBe('own');
      expect((await store.orders.find('theirs'))?.status).toBe('shown');
    });

    it('CBK-6 pays the newest when what a box showed is over', async () => {
      const store = await opened(await place());
      await store.orders.startPush(push('shown', 'shown'), order('shown'));
      await store.orders.add(order('new'));
      await store.orders.confirmPush('shown', BOX, 'shown', 3);
      // Calendar time ends no push that its box shows, unless it is away for longer than any clock is off.
      expect((await pay(store, 't', { atMs: 7_200_000 })).payment.order_ref).toBe('shown');
      await store.orders.startPush(push('again', 'shown'), undefined);
      await store.orders.confirmPush('again', BOX, 'shown', 3);
      expect((await pay(store, 'paid again', { atMs: 5 })).payment.order_ref).toBe('shown');
      await store.orders.startPush(push('over', 'shown'), undefined);
      await store.orders.confirmPush('over', BOX, 'shown', 3);
      await store.orders.endPush('over', BOX, 'expired', 4);
      expect((await pay(store, 'later', { atMs: 5 })).payment.order_ref).toBe('new');
    });

    it('CBK-6 pays what a box showed, until it is away for longer than a clock may be off', async () => {
      const store = await opened(await place());
      for (const id of ['one', 'two']) {
        await store.orders.startPush(push(id, id), order(id));
        await store.orders.confirmPush(id, BOX, 'shown', 3);
      }
      await store.orders.add(order('new'));
      const lastMs = 1_000 + 86_400_000;
      expect((await pay(store, 'in time', { atMs: lastMs - 1 })).payment.order_ref).toBe('two');
      expect((await pay(store, 'too late', { atMs: lastMs })).payment.order_ref).toBe('new');
    });

    it('AGT-11 the store knows whether a box was told of a payment before, each box by itself', async () => {
      const store = await opened(await place());
      const told = [BOX, 'VVB000002'].map((terminal_code) => ({
        terminal_code,
        push_id: null,
        told_at_ms: null,
      }));
      await pay(store, 't', { notices: told });
      const repeated = async (box: string) =>
        (await store.payments.takeUnreported(box, 7)).notices.map((it) => it.repeated);
      expect(await repeated(BOX)).toEqual([false]);
      expect(await repeated('VVB000002')).toEqual([false]);
      expect(await repeated(BOX)).toEqual([true]);
    });

    it('lists the newest 20 pushes of each order', async () => {
      const store = await opened(await place());
      for (const id of ['a', 'b']) await store.orders.add(order(id));
      for (let n = 0; n < 23; n += 1) {
        for (const id of n < 20 ? ['a', 'b'] : ['a']) await store.orders.startPush(push(`${id}${n}`, id), undefined);
      }
      const listed = (await store.orders.pushesOf(['a', 'b', 'none'])).map((it) => it.id);
      const numbers = (first: number, id: string) => Array.from({ length: 20 }, (_, n) => `${id}${first + n}`);
      expect(listed.filter((it) => it.startsWith('a'))).toEqual(numbers(3, 'a'));
      expect(listed.filter((it) => it.startsWith('b'))).toEqual(numbers(0, 'b'));
      expect(await store.orders.pushesOf([])).toEqual([]);
    });

    it('CBK-6 pays as many orders as there are payments at once', async () => {
      const store = await opened(await place());
      const ids = Array.from({ length: 20 }, (_, i) => `o${i}`);
      for (const id of ids) await store.orders.add(order(id));
      const paid = await Promise.all(ids.map((id) => pay(store, `of ${id}`)));
      expect(new Set(paid.map((it) => it.payment.order_ref))).toEqual(new Set(ids));
    });

    it('CBK-7 cancels every other open push of an order that is paid', async () => {
      const store = await opened(await place());
      await store.orders.startPush(push('p1', 'a'), order('a'));
      for (const id of ['p2', 'p3']) await store.orders.startPush(push(id, 'a'), undefined);
      await store.orders.endPush('p3', BOX, 'expired', 3);
      const { withdrawn } = await pay(store, 't', {
        orderRef: 'a',
        notices: [{ terminal_code: BOX, push_id: 'p2', told_at_ms: null }],
      });
      expect(withdrawn).toEqual([{ id: 'p1', terminal_code: BOX }]);
      expect((await pay(store, 'again', { orderRef: 'a' })).withdrawn).toEqual([]);
      await store.orders.startPush(push('p4', 'a'), undefined);
      expect((await pay(store, 'once more', { orderRef: 'a' })).withdrawn).toEqual([{ id: 'p4', terminal_code: BOX }]);
    });

    it.each(['failed', 'cancelled', 'ended'] as const)('MSG-3 flips nothing of a push that is %s', async (status) => {
      const store = await opened(await place());
      await store.orders.startPush(push('p', 'a'), order('a'));
      if (status === 'failed') await store.orders.failPush('p', BOX, 'BOX_TIMEOUT', 3, false);
      if (status === 'cancelled') await store.orders.cancel('a', 3);
      if (status === 'ended') await store.orders.endPush('p', BOX, 'expired', 3);
      const before = await store.orders.find('a');
      expect(await store.orders.confirmPush('p', BOX, 'accepted', 4)).toBe(false);
      expect(await store.orders.confirmPush('p', BOX, 'shown', 4)).toBe(false);
      expect(await store.orders.failPush('p', BOX, 'DISPLAY_FAULT', 4, true)).toBe(false);
      expect(await store.orders.confirmPush('p', 'VVB000002', 'shown', 4)).toBe(false);
      expect(await store.orders.find('a')).toEqual(before);
      expect((await store.orders.pushesOf(['a'])).map((it) => it.status)).toEqual([status]);
    });

    it('MSG-9 withdraws what a box may still show: unsure or cancelled, and not ended', async () => {
      const store = await opened(await place());
      for (const id of ['sure', 'crowded', 'unsure', 'cancelled', 'ended']) {
        await store.orders.startPush(push(id, id), order(id));
      }
      await store.orders.failPush('sure', BOX, 'DISPLAY_FAULT', 3, true);
      await store.orders.failPush('crowded', BOX, 'REPLACED', 3, false);
      await store.orders.failPush('unsure', BOX, 'BOX_TIMEOUT', 3, false);
      await store.orders.cancel('cancelled', 3);
      await store.orders.failPush('ended', BOX, 'BOX_OFFLINE', 3, false);
      await store.orders.endPush('ended', BOX, 'withdrawn', 4);
      expect(await store.orders.toWithdraw(BOX)).toEqual([
        { id: 'cancelled', why: 'cancelled' },
        { id: 'unsure', why: 'timeout' },
        { id: 'crowded', why: 'timeout' },
      ]);
    });
  });
});
