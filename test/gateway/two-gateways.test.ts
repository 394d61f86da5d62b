import { describe, expect, it, vi } from 'vitest';
import { CallNotes } from '../../src/gateway/partner/call-notes.ts';
import { systemRandom } from '../../src/lib/random.ts';
import { ACCOUNT, BOX1 } from './harness.ts';
import { CONFIRM_MS, TestBox, twoGateways } from './two-gateways.ts';

const { terminalCode } = BOX1;
const OFFLINE = { ok: false, code: 'BOX_OFFLINE' };
const credit = { bankAccount: ACCOUNT.bankAccount, content: 'DH001', amount: 50_000 };

describe('a push at a gateway that has not the box', () => {
  it('SND-3 is shown by the gateway that has it, and confirmed once the box has reported it', async () => {
    const { one, two, box, pushAt, turns, store, clock } = await twoGateways();
    await box.hello(two.hub);
    await clock.advance(1_000);
    const { pushId, result } = pushAt(one.hub);
    await turns();
    expect(await result).toEqual({ ok: true, value: undefined });
    expect(await store.orders.isConfirmed(pushId, 'displayed')).toBe(true);
    expect(box.of('show')).toMatchObject([{ pushId, sessionMs: 1_000, confirm: 'displayed' }]);
  });

  it('SND-3 is refused before anything is stored while no gateway has the box', async () => {
    const { one, pushAt, store } = await twoGateways();
    const { orderRef, result } = pushAt(one.hub);
    expect(await result).toMatchObject(OFFLINE);
    expect(await store.orders.find(orderRef)).toBeUndefined();
  });

  it('SND-3 is confirmed by its row when the answer is lost, and the box shows it once', async () => {
    const { one, two, box, pushAt, pass, room, turns } = await twoGateways();
    await box.hello(two.hub);
    await turns();
    room.arrives = (what) => (what === 'answer' ? 0 : 2);
    const { result } = pushAt(one.hub);
    await pass(1_500);
    expect(await result).toMatchObject({ ok: true });
    expect(box.of('show')).toHaveLength(1);
  });

  it('MSG-5 is asked for again when the question is lost, and does not live longer for that', async () => {
    const { one, two, box, pushAt, pass, room, turns } = await twoGateways();
    await box.hello(two.hub);
    await turns();
    room.arrives = (what) => (what === 'push' && room.said.filter((it) => it === 'push').length < 3 ? 0 : 1);
    const { result } = pushAt(one.hub);
    await pass(2_500);
    expect(await result).toMatchObject({ ok: true });
    const [show] = box.of('show');
    expect(Number(show?.sessionMs) + Number(show?.expiresInMs)).toBeLessThanOrEqual(300_000);
  });

  it('SND-3 SHA-5 is found in the rows by the gateway that has its box when nothing that is said arrives', async () => {
    const { one, two, box, pushAt, pass, room, turns } = await twoGateways();
    await box.hello(two.hub);
    await turns();
    room.arrives = () => 0;
    const { result } = pushAt(one.hub);
    await pass(4_000);
    expect(await result).toMatchObject({ ok: true });
    const shown = box.of('show');
    expect(shown).toHaveLength(1);
    expect(Number(shown[0]?.sessionMs) + Number(shown[0]?.expiresInMs)).toBeLessThanOrEqual(300_000);
  });

  it('SND-4 MSG-9 fails at its deadline, and the box withdraws it although the hint is lost', async () => {
    const { one, two, box, pushAt, pass, room, turns, store } = await twoGateways();
    await box.hello(two.hub);
    await turns();
    box.confirms = false;
    room.arrives = (what) => (what === 'hint withdraw' ? 0 : 1);
    const { pushId, result } = pushAt(one.hub);
    await pass(CONFIRM_MS + 500);
    expect(await result).toMatchObject({ code: 'BOX_TIMEOUT' });
    await pass(2_000);
    expect(box.of('withdraw')).toMatchObject([{ pushId, why: 'timeout' }]);
    await box.say({ type: 'shown', pushId });
    expect(await store.orders.isConfirmed(pushId, 'displayed')).toBe(false);
  });

  it('SND-4 is answered as its box has refused it', async () => {
    const { one, two, box, pushAt, turns } = await twoGateways();
    await box.hello(two.hub);
    box.confirms = false;
    const { pushId, result } = pushAt(one.hub);
    await turns();
    await box.say({ type: 'rejected', pushId, code: 'DISPLAY_FAULT', reason: 'dark' });
    await turns();
    expect(await result).toMatchObject({ code: 'DISPLAY_FAULT', reason: 'dark' });
    expect(box.of('withdraw')).toEqual([]);
  });

  it('SND-4 SHA-5 fails when its box says hello at another gateway before it has shown it, and the order is pushed again', async () => {
    const { one, two, box, pushAt, turns, pass, store, room } = await twoGateways();
    await box.hello(two.hub);
    box.confirms = false;
    const { orderRef, pushId, result } = pushAt(one.hub);
    await turns();
    expect(box.of('show')).toHaveLength(1);
    room.arrives = () => 0;
    box.confirms = true;
    await box.hello(one.hub);
    await pass(1_500);
    expect(await result).toMatchObject({ ok: true });
    expect(await store.pushes.state(pushId)).toMatchObject({ status: 'failed', code: 'BOX_OFFLINE' });
    const [, again] = box.of('show');
    const order = await store.orders.find(orderRef);
    expect(order).toMatchObject({ status: 'shown', last_push_id: again?.pushId });
    expect(again?.pushId).not.toBe(pushId);
    expect(Number(again?.sessionMs) + Number(again?.expiresInMs)).toBeLessThanOrEqual(300_000);
  });

  it('CAN-1 SHA-5 is not repeated for a box that moves once its order was cancelled', async () => {
    const { one, two, box, pushAt, turns, pass, store } = await twoGateways();
    await box.hello(two.hub);
    box.confirms = false;
    const { orderRef, result } = pushAt(one.hub);
    await turns();
    const failPush = store.orders.failPush.bind(store.orders);
    store.orders.failPush = async (...args) => {
      const failed = await failPush(...args);
      // As another gateway does between the two.
      await store.orders.cancel(orderRef, 1);
      return failed;
    };
    box.confirms = true;
    await box.hello(one.hub);
    await pass(1_500);
    expect(await result).toMatchObject(OFFLINE);
    expect(box.of('show')).toHaveLength(1);
    expect((await store.orders.find(orderRef))?.status).toBe('cancelled');
  });

  it.each(['sent away by', 'of a buried'] as const)(
    'SHA-5 SND-5 waits for a box %s gateway, and is shown once the box is back',
    async (what) => {
      const { one, two, box, pushAt, turns, pass } = await twoGateways();
      await box.hello(two.hub);
      await turns();
      if (what === 'of a buried') two.die();
      else await two.hub.close();
      expect(await one.hub.reachable(terminalCode)).toBe(true);
      const { pushId, result } = pushAt(one.hub);
      await pass(2_000);
      expect(box.of('show')).toEqual([]);
      await box.hello(one.hub);
      await pass(500);
      expect(await result).toEqual({ ok: true, value: undefined });
      const [show] = box.of('show');
      expect(show?.pushId).toBe(pushId);
      expect(Number(show?.sessionMs) + Number(show?.expiresInMs)).toBeLessThanOrEqual(298_000);
    },
  );

  it('SND-4 SHA-5 is not repeated for a box that moves once another order was pushed there', async () => {
    const { one, two, box, pushAt, turns, pass, store } = await twoGateways();
    await box.hello(two.hub);
    box.confirms = false;
    const { orderRef, pushId, result } = pushAt(one.hub);
    await turns();
    let newer: ReturnType<typeof pushAt> | undefined;
    const failPush = store.orders.failPush.bind(store.orders);
    store.orders.failPush = async (...args) => {
      const failed = await failPush(...args);
      // As another gateway does between the two.
      newer ??= pushAt(two.hub);
      await turns();
      return failed;
    };
    box.confirms = true;
    await box.hello(one.hub);
    await pass(1_500);
    expect(await result).toMatchObject(OFFLINE);
    expect(await newer?.result).toMatchObject({ ok: true });
    expect(await store.orders.find(orderRef)).toMatchObject({ status: 'failed', last_push_id: pushId });
    const shown = { status: 'shown', last_push_id: box.of('show').at(-1)?.pushId };
    expect(await store.orders.find(newer?.orderRef ?? '')).toMatchObject(shown);
  });

  it('SHA-5 SND-4 is refused at its deadline when its box, on its way to another gateway, does not come', async () => {
    const { one, two, box, pushAt, turns, pass, store, clock } = await twoGateways();
    await box.hello(two.hub);
    await turns();
    await two.hub.close();
    await clock.advance(1_000);
    const { orderRef, result } = pushAt(one.hub);
    let answer: unknown;
    void result.then((it) => {
      answer = it;
    });
    await pass(3_500);
    expect(answer).toBeUndefined();
    await pass(1_000);
    expect(answer).toMatchObject(OFFLINE);
    expect(await store.orders.find(orderRef)).toBeUndefined();
    expect(await one.hub.reachable(terminalCode)).toBe(false);
  });

  it('SND-5 is refused at once when its box itself has left', async () => {
    const { one, two, box, pushAt, turns } = await twoGateways();
    await box.hello(two.hub);
    await turns();
    box.leave();
    await turns();
    expect(await one.hub.reachable(terminalCode)).toBe(false);
    expect(await pushAt(one.hub).result).toMatchObject(OFFLINE);
  });

  it('SHA-5 is still shown by another gateway while its own one stops', async () => {
    const { one, two, box, pushAt, turns, pass } = await twoGateways();
    await box.hello(two.hub);
    box.confirms = false;
    const { pushId, result } = pushAt(one.hub);
    await turns();
    const closing = one.hub.close();
    await turns();
    await box.say({ type: 'shown', pushId });
    await pass(500);
    expect(await result).toMatchObject({ ok: true });
    await closing;
  });

  it('CAN-1 is withdrawn when its order is cancelled at any gateway', async () => {
    const { one, two, box, pushAt, turns } = await twoGateways();
    await box.hello(two.hub);
    const { pushId, orderRef, result } = pushAt(one.hub);
    await turns();
    expect((await result).ok).toBe(true);
    expect(await one.service.cancelOrder(orderRef)).toMatchObject({ ok: true });
    await turns();
    expect(box.of('withdraw')).toMatchObject([{ pushId, why: 'cancelled' }]);
    expect(box.screen).toBeUndefined();
  });

  it('SND-4 is not shown again when its question comes after its end', async () => {
    const { one, two, box, pushAt, turns, room, pass } = await twoGateways();
    await box.hello(two.hub);
    await turns();
    room.arrives = (what) => (what === 'push' ? 0 : 1);
    box.confirms = false;
    const { pushId, result } = pushAt(one.hub);
    await pass(CONFIRM_MS + 500);
    expect(await result).toMatchObject({ code: 'BOX_TIMEOUT' });
    const show = { type: 'show' as const, pushId, orderId: '', amount: 50_000, content: '', ...ACCOUNT, qrCode: '' };
    const late = { ...show, expiresAtMs: 1, expiresInMs: 1 };
    expect(await two.hub.pushes.show({ box: terminalCode, show: late, askedAtMs: 0 })).toMatchObject({
      code: 'BOX_TIMEOUT',
    });
    // The rows have shown it before its end.
    expect(box.of('show')).toHaveLength(1);
  });

  it('SND-4 fails some seconds after its gateway has died, and leaves the screen', async () => {
    const { one, two, box, pushAt, turns, pass, store } = await twoGateways();
    await box.hello(two.hub);
    box.confirms = false;
    const { orderRef, pushId } = pushAt(one.hub);
    await turns();
    const failPush = one.stored.store.orders.failPush.bind(store.orders);
    store.orders.failPush = async (...args) => (args[2] === 'BOX_TIMEOUT' ? false : failPush(...args));
    one.die();
    await pass(CONFIRM_MS + 7_000);
    expect(await store.orders.find(orderRef)).toMatchObject({ status: 'failed', failure: 'BOX_OFFLINE' });
    expect(box.of('withdraw')).toMatchObject([{ pushId, why: 'timeout' }]);
  });

  it('REG-5 is refused when another gateway has disabled the box or its account, or linked it elsewhere', async () => {
    const { one, two, box, pushAt, store } = await twoGateways();
    await box.hello(two.hub);
    const refusalAfter = async (table: 'boxes' | 'accounts', name: string, change: object) => {
      const row = await store.registry.find(table, name);
      if (row === undefined) throw new Error('no row');
      await store.registry.put(table, { ...row, ...change });
      const { orderRef, result } = pushAt(one.hub);
      const refused = await result;
      await store.registry.put(table, row);
      expect(await store.orders.find(orderRef)).toBeUndefined();
      return refused;
    };
    expect(await refusalAfter('boxes', terminalCode, { disabled: 1 })).toMatchObject(OFFLINE);
    expect(await refusalAfter('accounts', ACCOUNT.bankAccount, { disabled: 1 })).toMatchObject({ code: 'E36' });
    expect(await refusalAfter('boxes', terminalCode, { account: 'other' })).toMatchObject({ code: 'QR_MISMATCH' });
    expect(await refusalAfter('boxes', terminalCode, { account: null })).toMatchObject({ code: 'QR_MISMATCH' });
  });
});

describe('a box that speaks with another gateway', () => {
  it('MSG-8 ends its older session there, although the hint is lost', async () => {
    const { one, two, box, pass, turns, room } = await twoGateways();
    const older = new TestBox();
    await older.hello(one.hub);
    room.arrives = () => 0;
    await box.hello(two.hub);
    await turns();
    expect([one.hub.sessions.size, two.hub.sessions.size]).toEqual([1, 1]);
    await pass(5_000);
    expect([one.hub.sessions.size, two.hub.sessions.size]).toEqual([0, 1]);
    expect(older.of('refused')).toMatchObject([{ code: 'SUPERSEDED', sessionId: older.sessionId }]);
    expect(room.rows.get(terminalCode)).toMatchObject({ run: 'two', sessionId: box.sessionId });
  });

  it('MSG-12 refuses the older session as superseded while it goes on sending', async () => {
    const { one, two, box, turns, pass } = await twoGateways();
    const older = new TestBox();
    await older.hello(one.hub);
    await box.hello(two.hub);
    await turns();
    expect(older.of('refused')).toMatchObject([{ code: 'SUPERSEDED' }]);
    await pass(6_000);
    await older.say({ type: 'alive' });
    expect(older.of('refused').map((it) => it.code)).toEqual(['SUPERSEDED', 'SUPERSEDED']);
    expect(two.hub.sessions.size).toBe(1);
  });

  it('MSG-8 keeps its newest session when a hint about an older one comes late', async () => {
    const { one, two, box, turns } = await twoGateways();
    await box.hello(two.hub);
    const late = box.sessionId;
    await box.hello(one.hub);
    await turns();
    one.shared.replaced(terminalCode, late);
    await turns();
    expect(one.hub.session(terminalCode)?.sessionId).toBe(box.sessionId);
  });

  it('MSG-12 says hello again when its lease is gone', async () => {
    const { one, box, pass, room } = await twoGateways();
    await box.hello(one.hub);
    const { sessionId } = box;
    room.rows.clear();
    await pass(6_000);
    expect(box.of('refused')).toMatchObject([{ code: 'SESSION_ENDED', sessionId }]);
    expect(one.hub.session(terminalCode)?.sessionId).toBe(box.sessionId);
    expect(box.sessionId).not.toBe(sessionId);
  });

  it('MSG-8 yields to a session that another gateway has heard, and takes over from one that is silent', async () => {
    const { one, two, box, clock, turns, room } = await twoGateways();
    await box.hello(two.hub);
    const polite = new TestBox();
    await polite.hello(one.hub, { yields: true });
    expect(polite.of('refused')).toMatchObject([{ code: 'SUPERSEDED' }]);
    await clock.advance(20_000);
    await box.say({ type: 'alive' });
    await clock.advance(20_000);
    await polite.hello(one.hub, { yields: true });
    expect(polite.of('welcome')).toEqual([]);
    await clock.advance(6_000);
    room.arrives = (what) => (what === 'heard' ? 0 : 1);
    const unanswered = polite.hello(one.hub, { yields: true });
    await turns();
    await clock.advance(2_000);
    await unanswered;
    expect(polite.of('welcome')).toEqual([]);
    room.arrives = () => 1;
    await polite.hello(one.hub, { yields: true });
    expect(polite.of('welcome')).toHaveLength(1);
  });

  it('MSG-4 gets no welcome while the database does not let its gateway have it, and its connection ends', async () => {
    const { one, box, room, turns } = await twoGateways();
    const { place } = one.world;
    const claim = place.claim;
    place.claim = () => Promise.reject(new Error('away'));
    await box.hello(one.hub);
    expect([box.got, one.hub.sessions.size, box.ended]).toEqual([[], 0, 1]);
    place.claim = claim;
    await box.hello(one.hub);
    expect(box.of('welcome')).toHaveLength(1);
    expect(room.rows.size).toBe(1);
    box.leave();
    await turns();
    expect(room.rows.size).toBe(0);
    await box.hello(one.hub);
    await one.close();
    expect(room.rows.size).toBe(0);
  });

  it("MSG-4 is nobody's when its welcome fails", async () => {
    const { one, box, room, store } = await twoGateways();
    const open = store.orders.openPushIds.bind(store.orders);
    store.orders.openPushIds = () => Promise.reject(new Error('full'));
    await box.hello(one.hub);
    expect([room.rows.size, one.hub.sessions.size]).toEqual([0, 0]);
    store.orders.openPushIds = open;
  });

  it('is seen by both gateways', async () => {
    const { one, two, box } = await twoGateways();
    await box.hello(two.hub);
    const seen = { terminalCode, sessionId: box.sessionId, transport: 'mqtt' };
    for (const { hub } of [one, two]) {
      expect((await hub.seen([terminalCode, 'VVB000002'])).get(terminalCode)).toMatchObject(seen);
      expect([await hub.online(terminalCode), await hub.online('VVB000002')]).toEqual([true, false]);
      expect(await hub.onlineCodes(5)).toEqual([terminalCode]);
      expect(await hub.onlineCodes(5, ['VVB000002'])).toEqual([]);
    }
  });
});

describe('a payment at a gateway that has not the box', () => {
  it.each([1, 0, 2])('MSG-7 AGT-11 reaches the box as new when its hint arrives %i times', async (times) => {
    const { one, two, box, pass, room, partner, turns } = await twoGateways();
    await box.hello(two.hub);
    await turns();
    room.arrives = () => times;
    expect(await one.service.testCallback(partner, credit, new CallNotes(true))).toMatchObject({ ok: true });
    await (times === 0 ? pass(2_000) : turns());
    expect(box.of('payment')).toMatchObject([{ amount: 50_000, repeated: false, late: false }]);
  });

  it('MSG-7 reaches a box that left its gateway while it was stored', async () => {
    const { one, two, box, pass, room, partner, serviceAt } = await twoGateways();
    await box.hello(two.hub);
    room.arrives = () => 0;
    const service = serviceAt(one, { session: () => ({}) });
    expect(await service.testCallback(partner, credit, new CallNotes(true))).toMatchObject({ ok: true });
    await pass(3_000);
    expect(box.paid).toHaveLength(1);
  });

  it('AGT-11 has a box that moved announce what came meanwhile', async () => {
    const { one, two, box, turns, clock, store } = await twoGateways();
    await box.hello(one.hub);
    await clock.advance(3_600_000);
    await box.hello(two.hub);
    await turns();
    const isNews = two.hub.session(terminalCode)?.isNews;
    const nowMs = clock.wallMs();
    expect(isNews?.({ paid_at_ms: nowMs - 600_000, stored_at_ms: nowMs - 1 })).toBe(true);
    expect(await store.orders.openPushIds(terminalCode)).toEqual([]);
  });
});

it.each([1, 2, 3, 4, 5, 6])(
  'SND-3 MSG-7 MSG-9 two gateways agree with the box, whatever is lost: seed %i',
  async (seed) => {
    const { one, two, box, pushAt, pass, room, partner, store } = await twoGateways();
    let state = seed;
    const chance = () => {
      state = (state * 48_271) % 2_147_483_647;
      return state / 2_147_483_647;
    };
    const either = () => (chance() < 0.5 ? one : two);
    await box.hello(two.hub);
    room.arrives = () => Math.floor(chance() * 3);
    const pushed: { pushId: string; orderRef: string; result: Promise<{ ok: boolean }> }[] = [];
    let payments = 0;
    for (let step = 0; step < 25; step += 1) {
      const roll = chance();
      if (roll < 0.5) pushed.push(pushAt(either().hub));
      else if (roll < 0.65) await box.hello(either().hub);
      else if (roll < 0.75) box.confirms = !box.confirms;
      else if (roll < 0.9) {
        payments += 1;
        await either().service.testCallback(
          partner,
          { ...credit, content: systemRandom.uuid().slice(0, 8) },
          new CallNotes(true),
        );
      }
      await pass(Math.floor(chance() * 4) * 500);
    }
    box.confirms = true;
    room.arrives = () => 1;
    await pass(25_000, 1_000);
    for (const { pushId, orderRef, result } of pushed) {
      const order = await store.orders.find(orderRef);
      // The order is pushed again when the box moves under its push.
      const last = order?.last_push_id ?? pushId;
      if (last !== pushId) expect((await store.pushes.state(pushId))?.status).toBe('failed');
      const state = await store.pushes.state(last);
      const wasShown = box.of('show').some((it) => it.pushId === last);
      if ((await result).ok) expect([state?.wasShown, wasShown]).toEqual([true, true]);
      else expect(['failed', 'cancelled', 'ended']).toContain(state?.status);
    }
    expect(await store.pushes.toWithdrawAmong([terminalCode])).toEqual([]);
    expect(new Set(box.paid).size).toBe(payments);
    if (box.screen !== undefined) expect((await store.pushes.state(box.screen))?.status).toBe('shown');
    expect(one.hub.sessions.size + two.hub.sessions.size).toBe(1);
  },
);

it('a gateway that stops ends its looks at shared rows before it closes its store', async () => {
  const { one, store, clock, turns } = await twoGateways();
  const held = Promise.withResolvers<void>();
  const looks: string[] = [];
  vi.spyOn(one.world.place, 'lost').mockImplementation(async () => {
    looks.push('boxes');
    await held.promise;
    return [];
  });
  vi.spyOn(store.registry, 'version').mockImplementation(async () => {
    looks.push('registry');
    await held.promise;
    return '1';
  });
  await clock.advance(1_000);
  await turns(2);
  expect(new Set(looks)).toEqual(new Set(['boxes', 'registry']));
  const ended: string[] = [];
  const closing = [
    one.shared.close().then(() => ended.push('boxes')),
    one.world.opened.close(60_000).then(() => ended.push('registry')),
  ];
  await turns(2);
  expect(ended).toEqual([]);
  held.resolve();
  await Promise.all(closing);
  expect(ended.toSorted()).toEqual(['boxes', 'registry']);
});
