import { expect, it, onTestFinished } from 'vitest';
import type { BoxConnection } from '../../src/gateway/boxes/connection.ts';
import { Hub } from '../../src/gateway/boxes/hub.ts';
import { Session } from '../../src/gateway/boxes/session.ts';
import { aliveMsFor, spreadMsFor } from '../../src/gateway/boxes/welcome.ts';
import type { PaymentHearers } from '../../src/gateway/money/receive-payment.ts';
import { CallNotes } from '../../src/gateway/partner/call-notes.ts';
import { systemRandom } from '../../src/lib/random.ts';
import { turn, VirtualClock } from '../../src/lib/virtual-clock.ts';
import type { DownMessage, UpBody } from '../../src/protocol/messages.ts';
import { ACCOUNT, BOX1, qrFor } from './harness.ts';
import { oneShop, serviceAlone } from './service-alone.ts';
import { worldOf } from './stage-records.ts';

const RESEND_MS = 10_000;

/** The hub over a real store, with a connection to box 1 that can lose messages; the clock stands still. */
async function hubWithBox() {
  const clock = new VirtualClock();
  const { world, stored, partner } = await oneShop({ confirm: 'displayed', confirmTimeoutMs: 5_000 }, { clock });
  const { store } = stored;
  const hub = new Hub(world, stored);
  onTestFinished(() => hub.close());
  const got: DownMessage[] = [];
  const network = { loses: (_message: DownMessage) => false };
  const connection: BoxConnection = {
    transport: 'mqtt',
    send: (message) => {
      if (!network.loses(message)) got.push(message);
    },
    end: () => undefined,
  };
  const sessionId = systemRandom.uuid();
  const say = (body: UpBody, session = sessionId) => {
    const head = { v: 1, id: systemRandom.uuid(), sentAtMs: 1, sessionId: session } as const;
    return hub.receive(BOX1.terminalCode, connection, { ...head, ...body });
  };
  const { terminalCode, serialNumber } = BOX1;
  const hello = (session = sessionId, how: { yields?: boolean } = {}) => {
    const version = { agentVersion: '', display: '', shownPushId: null };
    return say({ type: 'hello', terminalCode, serialNumber, ...version, ...how }, session);
  };
  const push = (pushId: string) => {
    const orderRef = systemRandom.uuid();
    const createdAtMs = clock.wallMs();
    const [amount, content, qrCode] = [50_000, 'DH001', qrFor()];
    const expiresAtMs = createdAtMs + 300_000;
    const result = hub.push(
      {
        ...{ id: pushId, order_ref: orderRef, terminal_code: terminalCode },
        ...{ created_at_ms: createdAtMs, expires_at_ms: expiresAtMs },
      },
      {
        ...{ id: orderRef, partner: 'demo', order_id: 'DH001', bank_account: ACCOUNT.bankAccount, bank_code: 'MB' },
        ...{ user_bank_name: '', amount, content, trans_type: 'C', qr_code: qrCode, terminal_code: terminalCode },
        ...{ sub_terminal_code: '', service_code: '', sign: '', url_link: '', created_at_ms: createdAtMs },
      },
      {
        type: 'show',
        pushId,
        orderId: 'DH001',
        amount,
        content,
        ...ACCOUNT,
        qrCode,
        expiresAtMs,
        expiresInMs: 300_000,
      },
    );
    return { orderRef, result };
  };
  const types = () => got.map((it) => it.type);
  /** Lets things happen that wait for no clock; a query waits until the disk has what was written before it. */
  const turns = async (count = 40) => {
    for (let i = 0; i < count; i += 1) {
      await turn();
      await store.qrCodes.find('none');
    }
  };
  /** The service over this hub; its payments are reported to `boxes` and `dispatcher`. */
  const serviceOf = (boxes: PaymentHearers['hub'] = hub, dispatcher = { wake: (_partner: string) => undefined }) =>
    serviceAlone(world, stored, hub, { hub: boxes, dispatcher });
  return { clock, store, serviceOf, partner, hub, got, types, network, connection, say, hello, push, turns };
}

it('the hub begins no session while it closes', async () => {
  const { hub, hello, got } = await hubWithBox();
  got.length = 0;
  const said = hello(systemRandom.uuid());
  await hub.close();
  await said;
  expect(got.filter(({ type }) => type === 'welcome')).toEqual([]);
  expect(hub.session(BOX1.terminalCode)).toBeUndefined();
});

it('SND-3 the hub answers what it has stored, although it is stopped in that moment', async () => {
  const { store, hub, say, hello, push, turns } = await hubWithBox();
  await hello();
  const pushId = systemRandom.uuid();
  const { result } = push(pushId);
  await turns();
  const stored = say({ type: 'shown', pushId });
  for (let i = 0; i < 5; i += 1) await Promise.resolve();
  await Promise.all([stored, hub.close()]);
  const isOpen = (await store.orders.openPushIds(BOX1.terminalCode)).includes(pushId);
  expect((await result).ok).toBe(isOpen);
});

it('MSG-9 the hub repeats a withdrawal that was lost, although it came while the store was read', async () => {
  const { clock, store, hub, say, hello, push, types, network, turns } = await hubWithBox();
  await hello();
  const pushId = systemRandom.uuid();
  const { result, orderRef } = push(pushId);
  await turns();
  await say({ type: 'shown', pushId });
  expect((await result).ok).toBe(true);
  network.loses = (message) => message.type === 'withdraw';
  const read = store.payments.takeUnreported.bind(store.payments);
  store.payments.takeUnreported = async (...args) => {
    store.payments.takeUnreported = read;
    for (const it of (await store.orders.cancel(orderRef, clock.wallMs()))?.withdrawn ?? []) {
      hub.withdrawPush(it.terminal_code, it.id, 'cancelled');
    }
    return read(...args);
  };
  hub.resendFromStore([BOX1.terminalCode]);
  await clock.advance(RESEND_MS);
  await turns();
  network.loses = () => false;
  expect(types()).not.toContain('withdraw');
  await clock.advance(RESEND_MS);
  await turns();
  expect(types()).toContain('withdraw');
});

it('MSG-4 the hub sends nothing to a box before its welcome', async () => {
  const { store, hello, push, got, turns } = await hubWithBox();
  const read = store.orders.openPushIds.bind(store.orders);
  store.orders.openPushIds = async (...args) => {
    await turns(20);
    return read(...args);
  };
  const welcomed = hello();
  await turns(2);
  const { result } = push(systemRandom.uuid());
  await welcomed;
  await turns();
  expect(got[0]?.type).toBe('welcome');
  expect(await result).toMatchObject({ code: 'BOX_OFFLINE' });
});

it('MSG-4 the hub ignores a confirmation of its session that comes on another connection', async () => {
  const { hub, hello, push, say, connection, got, turns } = await hubWithBox();
  await hello();
  const pushId = systemRandom.uuid();
  const { result } = push(pushId);
  await turns();
  const [welcome] = got;
  if (welcome === undefined) throw new Error('no welcome');
  const shown = {
    v: 1,
    id: systemRandom.uuid(),
    sentAtMs: 1,
    sessionId: welcome.sessionId,
    type: 'shown',
    pushId,
  } as const;
  await hub.receive(BOX1.terminalCode, { ...connection }, shown);
  await say({ type: 'rejected', pushId, code: 'DISPLAY_FAULT', reason: 'unplugged' });
  expect(await result).toMatchObject({ code: 'DISPLAY_FAULT' });
});

it('MSG-8 the hub tells a superseded agent again that goes on speaking, but not each time', async () => {
  const { clock, say, hello, got, network } = await hubWithBox();
  await hello();
  network.loses = (message) => message.type === 'refused';
  await hello(systemRandom.uuid());
  network.loses = () => false;
  const speak = () => say({ type: 'ended', pushId: systemRandom.uuid(), orderId: '', how: 'expired' });
  const refusals = () => got.filter((it) => it.type === 'refused').length;
  for (let i = 0; i < 5; i += 1) await speak();
  expect(refusals()).toBe(1);
  await clock.advance(RESEND_MS);
  await speak();
  expect(refusals()).toBe(2);
});

it('MSG-8 the hub accepts a hello that yields only once nobody has spoken in the session in use for 25 s', async () => {
  const { clock, hub, say, hello, got } = await hubWithBox();
  await hello();
  const [inUse, polite] = [hub.session(BOX1.terminalCode)?.sessionId, systemRandom.uuid()];
  const askedBy = async () => {
    await hello(polite, { yields: true });
    return { session: hub.session(BOX1.terminalCode)?.sessionId, answer: got.at(-1) };
  };
  await clock.advance(20_000);
  await say({ type: 'alive' });
  await clock.advance(20_000);
  expect(await askedBy()).toMatchObject({ session: inUse, answer: { code: 'SUPERSEDED', sessionId: polite } });
  expect(got.filter((it) => it.sessionId === inUse).map((it) => it.type)).toEqual(['welcome', 'heard']);
  await clock.advance(5_000);
  expect(await askedBy()).toMatchObject({ session: polite, answer: { type: 'welcome', sessionId: polite } });
});

it('MSG-11 the hub waits for the heartbeats of a box as long as it has told it to', async () => {
  const { clock, connection, got } = await hubWithBox();
  const hello = {
    ...({ v: 1, type: 'hello', id: systemRandom.uuid(), sentAtMs: 1, sessionId: systemRandom.uuid() } as const),
    ...{ terminalCode: BOX1.terminalCode, serialNumber: BOX1.serialNumber, agentVersion: '', display: '' },
    shownPushId: null,
  };
  const session = new Session(hello, connection, { aliveMs: 60_000, isNews: () => true }, worldOf({ clock }));
  await clock.advance(149_999);
  expect(session.isAlive).toBe(true);
  await clock.advance(1);
  expect(session.isAlive).toBe(false);
  for (const aliveMs of [20_000, 10_000]) {
    session.heard();
    session.answerAlive(systemRandom.uuid(), aliveMs);
    await clock.advance(2.5 * aliveMs - 1);
    expect(session.isAlive).toBe(true);
    await clock.advance(1);
    expect(session.isAlive).toBe(false);
  }
  // Left out is 10 s.
  expect(got.map((it) => it.type === 'heard' && it.aliveMs)).toEqual([20_000, undefined]);
});

it('MSG-11 the hub asks many boxes for at most 200 heartbeats a second, and none for less than one a minute', () => {
  const intervals = [0, 1, 2_000, 2_001, 4_000, 11_999, 12_000, 12_001, 1_000_000].map(aliveMsFor);
  expect(intervals).toEqual([10_000, 10_000, 10_000, 10_005, 20_000, 59_995, 60_000, 60_000, 60_000]);
});

it('PRE-6 the hub spreads the hellos of many boxes, and of few not at all', () => {
  expect([0, 99, 100, 976.6, 2_500, 1_000_000].map(spreadMsFor)).toEqual([0, 0, 200, 1_953, 5_000, 5_000]);
});

it('MSG-9 the hub withdraws a push again that the box shows although it had refused it', async () => {
  const { say, hello, push, got, turns } = await hubWithBox();
  await hello();
  const pushId = systemRandom.uuid();
  const { result } = push(pushId);
  await turns();
  await say({ type: 'rejected', pushId, code: 'STORAGE_FAULT', reason: 'full' });
  expect((await result).ok).toBe(false);
  await say({ type: 'shown', pushId });
  expect(got.at(-1)).toMatchObject({ type: 'withdraw', pushId });
});

const credit = { bankAccount: ACCOUNT.bankAccount, content: 'DH001', amount: 50_000 };

it('MSG-7 SYN-4 the hub reports a payment that is stored although the store failed to say so', async () => {
  const { hub, store, clock, hello, got, serviceOf, partner, turns } = await hubWithBox();
  await hello();
  const within = store.within.bind(store);
  store.within = async (work) => {
    await within(work);
    throw new Error('the connection ended');
  };
  const woken: string[] = [];
  const dispatcher = { wake: (name: string) => void woken.push(name) };
  const service = serviceOf(hub, dispatcher);
  const paying = service.testCallback(partner, credit, new CallNotes(true));
  await expect(paying).rejects.toThrow('the connection ended');
  expect(woken).toEqual(['demo']);
  await clock.advance(RESEND_MS);
  await turns();
  expect(got.filter((it) => it.type === 'payment')).toMatchObject([{ amount: 50_000 }]);
});

it('MSG-7 AGT-11 the hub tells a box of a payment, and that it is new, although the box came while it was stored', async () => {
  const { hub, clock, hello, got, serviceOf, partner, turns } = await hubWithBox();
  await hello();
  const [sendPayment, resendFromStore] = [hub.sendPayment.bind(hub), hub.resendFromStore.bind(hub)];
  const away = {
    sendPayment,
    resendFromStore,
    withdrawPush: hub.withdrawPush.bind(hub),
    session: () => undefined,
  };
  const service = serviceOf(away);
  await service.testCallback(partner, credit, new CallNotes(true));
  await clock.advance(RESEND_MS);
  await turns();
  expect(got.filter((it) => it.type === 'payment')).toMatchObject([{ amount: 50_000, repeated: false }]);
});

it('the hub does not say that an order is cancelled which is paid in that moment', async () => {
  const { store, hello, push, say, types, serviceOf, turns } = await hubWithBox();
  await hello();
  const pushId = systemRandom.uuid();
  const { result, orderRef } = push(pushId);
  await turns();
  await say({ type: 'shown', pushId });
  expect((await result).ok).toBe(true);
  const service = serviceOf();
  const find = store.orders.find.bind(store.orders);
  store.orders.find = async (id) => {
    const found = await find(id);
    store.orders.find = find;
    await service.payOrder(orderRef);
    return found;
  };
  expect(await service.cancelOrder(orderRef)).toMatchObject({ ok: false, reason: 'the order is paid' });
  expect((await find(orderRef))?.status).toBe('paid');
  expect(types()).not.toContain('withdraw');
});
