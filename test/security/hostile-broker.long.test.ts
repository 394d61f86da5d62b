import { describe, expect, it } from 'vitest';
import { systemRandom } from '../../src/lib/random.ts';
import { signingKeyOf } from '../../src/protocol/keys.ts';
import { boxTopic, GATEWAY_PRESENCE_TOPIC } from '../../src/protocol/topics.ts';
import { BOX1, BOX2, OTHER_ACCOUNT, type TestGateway } from '../gateway/harness.ts';
import { eventually } from '../support/net.ts';
import { altered, HONEST, headOf, holding, said } from './hostile-relay.ts';
import {
  DOWN,
  forgery,
  PRESENCE,
  pay,
  pushed,
  refusedByBox,
  refusedByGateway,
  reported,
  type Stage,
  SUCCESS,
  showOf,
  stage,
  startGatewayAt,
  UP,
} from './hostile-stage.ts';
import { startRealBox } from './real-box.ts';

describe('whoever runs the broker', () => {
  it('THR-17 a hostile broker shows no QR on a box: none of its own, no old one, none of another box, none changed or held back', async () => {
    const it = await stage();
    const { relay, gateway, box } = it;
    const box2 = await startRealBox(BOX2, { transport: 'mqtt', url: relay.url });
    expect(await pushed(gateway, 'OLD')).toEqual(SUCCESS);
    relay.rule = holding(BOX1.terminalCode, 'show');
    const held = pushed(gateway, 'HELD');
    const heldShow = await relay.message(DOWN, 'show', 2);
    relay.rule = HONEST;
    expect(await pushed(gateway, 'NEW')).toEqual(SUCCESS);
    expect(await pushed(gateway, 'OTHER', BOX2)).toEqual(SUCCESS);
    const [old = '', , live = ''] = relay.messages(DOWN, 'show');
    const others = await relay.message(boxTopic(BOX2.terminalCode, 'down'), 'show');
    const { kid } = headOf(live);
    const sessionId = String(said(live)?.sessionId);

    const refusals = [
      ['MESSAGE_ILLEGAL', JSON.stringify(showOf({ v: 1, id: crypto.randomUUID(), sentAtMs: 1, sessionId }))],
      ['KEY_UNKNOWN', forgery(relay, showOf({}), sessionId, { from: 'gateway', introduce: false })],
      ['KEY_UNKNOWN', forgery(relay, showOf({}), sessionId, { from: 'gateway' })],
      ['MESSAGE_REPLAYED', old],
      ['MESSAGE_REPLAYED', live],
      ['MESSAGE_REORDERED', heldShow],
      ['WRONG_BOX', others],
      ['WRONG_SESSION', altered(others, 'head', { terminalCode: BOX1.terminalCode, kid })],
      ['SIGNATURE_INVALID', altered(live, 'head', { seq: 1_000 })],
      ['SIGNATURE_INVALID', altered(live, 'body', showOf({}))],
      ['KEY_UNKNOWN', altered(live, 'head', { kid: signingKeyOf(systemRandom.secret(32)).kid })],
      ['MESSAGE_ILLEGAL', altered(live, 'head', { alg: 'none' })],
    ] as const;
    for (const [code, payload] of refusals) expect(await refusedByBox(it, payload)).toBe(code);
    expect((await box.status()).order?.orderId).toBe('NEW');
    expect((await box2.status()).order?.orderId).toBe('OTHER');
    expect(box2.refusals()).toEqual([]);
    await gateway.close();
    expect(await held).toMatchObject({ status: 'FAILED' });
  });

  it('THR-17 SHA-2 a hostile broker has a box neither say paid, nor remove its QR, nor change its account, nor go elsewhere', async () => {
    const it = await stage();
    const { relay, gateway, box } = it;
    expect(await pushed(gateway, 'PAID')).toEqual(SUCCESS);
    const transactionId = String((await pay(gateway, 'PAID')).message);
    await eventually('paid', async () => (await box.status()).state === 'paid');
    expect(await pushed(gateway, 'GONE')).toEqual(SUCCESS);
    const payment = await relay.message(DOWN, 'payment');
    await eventually('its report', async () => (await reported(gateway)).length === 1);
    expect(await pushed(gateway, 'NEXT')).toEqual(SUCCESS);
    const shown = await relay.message(DOWN, 'show', 3);
    const [{ sessionId, pushId } = {}, welcome] = [said(shown), await relay.message(DOWN, 'welcome')];
    const paid = { ...said(payment), transactionId: crypto.randomUUID(), pushId };
    const withdraw = { type: 'withdraw', pushId, why: 'cancelled' };
    const link = { type: 'welcome', link: OTHER_ACCOUNT, openPushIds: [] };
    const superseded = { type: 'refused', code: 'SUPERSEDED', reason: '' };
    const moved = { type: 'refused', code: 'MOVED', reason: '', shard: 3 };
    for (const body of [paid, withdraw, link, superseded, moved]) {
      for (const introduce of [true, false]) {
        const forged = forgery(relay, body, sessionId, { from: 'gateway', introduce });
        expect(await refusedByBox(it, forged)).toBe('KEY_UNKNOWN');
      }
      expect(await refusedByBox(it, altered(shown, 'body', body))).toBe('SIGNATURE_INVALID');
    }
    for (const old of [payment, welcome]) expect(await refusedByBox(it, old)).toBe('MESSAGE_REPLAYED');
    expect((await box.status()).order?.orderId).toBe('NEXT');
    expect((await box.status()).lastPayment?.transactionId).toBe(transactionId);
    expect(box.log.filter((it) => it.event === 'link-moved')).toEqual([]);
  });

  it('THR-17 a hostile broker replays nothing to a box, after a restart of box, gateway or connection', async () => {
    const { relay, gateway, box, dataDir } = await stage();
    expect(await pushed(gateway, 'OLD')).toEqual(SUCCESS);
    expect(await pay(gateway, 'OLD')).toMatchObject({ status: 'SUCCESS' });
    await relay.message(UP, 'paid');
    const types = ['welcome', 'show', 'payment', 'ack'];
    const old = await Promise.all(types.map((type) => relay.message(DOWN, type)));
    const refusedAgain = async (it: Stage) => {
      for (const payload of old) expect(await refusedByBox(it, payload)).toBe('WRONG_SESSION');
    };
    await eventually('idle', async () => (await box.status()).state === 'idle');
    relay.cut(BOX1.terminalCode);
    await relay.message(DOWN, 'welcome', 2);
    await refusedAgain({ relay, gateway, box, dataDir });
    await box.close();
    // As one that was kept for whoever comes next.
    await relay.inject(DOWN, old[1] ?? '', true);
    const again = await startRealBox(BOX1, { transport: 'mqtt', url: relay.url }, box.dataDir);
    expect(again.refusals()).toEqual(['MESSAGE_ILLEGAL']);
    await refusedAgain({ relay, gateway, box: again, dataDir });
    await gateway.close();
    const next = await startGatewayAt(relay, dataDir);
    await relay.message(DOWN, 'welcome', 4);
    await eventually('online', async () => (await again.status()).online);
    await refusedAgain({ relay, gateway: next, box: again, dataDir });
    expect(await pushed(next, 'NEW')).toEqual(SUCCESS);
  });

  it('THR-18 a hostile broker has a gateway not believe that a QR is on a screen, or a payment announced', async () => {
    const { relay, gateway, box } = await stage(4_000);
    const box2 = await startRealBox(BOX2, { transport: 'mqtt', url: relay.url });
    expect(await pushed(gateway, 'OLD')).toEqual(SUCCESS);
    expect(await pushed(gateway, 'OTHER', BOX2)).toEqual(SUCCESS);
    const old = await relay.message(UP, 'shown');
    const others = await relay.message(boxTopic(BOX2.terminalCode, 'up'), 'shown');
    relay.rule = holding(BOX1.terminalCode, 'show', 'payment');
    const answer = pushed(gateway, 'HELD');
    const { pushId, sessionId } = said(await relay.message(DOWN, 'show', 2)) ?? {};
    const transactionId = String((await pay(gateway, 'OLD')).message);
    await relay.message(DOWN, 'payment');

    const shown = { type: 'shown', pushId };
    const paid = { type: 'paid', transactionId, orderId: 'OLD', amount: 50_000, recorded: true };
    for (const body of [shown, paid]) {
      const forged = (introduce: boolean) => forgery(relay, body, sessionId, { from: 'box', introduce });
      const refusals = [
        ['KEY_UNKNOWN', forged(true)],
        ['KEY_UNKNOWN', forged(false)],
        ['SIGNATURE_INVALID', altered(altered(old, 'body', body), 'head', { seq: 1_000 })],
        ['MESSAGE_ILLEGAL', JSON.stringify({ v: 1, id: crypto.randomUUID(), sentAtMs: 1, sessionId, ...body })],
      ] as const;
      for (const [code, payload] of refusals) expect(await refusedByGateway(relay, gateway, payload)).toBe(code);
    }
    expect(await refusedByGateway(relay, gateway, old)).toBe('MESSAGE_REPLAYED');
    expect(await refusedByGateway(relay, gateway, others)).toBe('WRONG_BOX');
    expect(await answer).toEqual({ status: 'FAILED', message: 'BOX_TIMEOUT' });
    expect(await reported(gateway)).toEqual([]);
    expect((await box.status()).order?.orderId).toBe('OLD');
    expect((await box2.status()).order?.orderId).toBe('OTHER');
  });

  it('THR-18 a hostile broker begins no session by an old hello, nor by one that it held back, and the live one goes on', async () => {
    const { relay, gateway, box, dataDir } = await stage();
    // On a slow machine a box may have said hello more than once.
    const begun = relay.messages(UP, 'hello').length;
    const welcomed = relay.messages(DOWN, 'welcome').length;
    const [first = ''] = relay.messages(UP, 'hello').slice(-1);
    relay.rule = holding(BOX1.terminalCode, 'hello');
    relay.cut(BOX1.terminalCode);
    const held = await relay.message(UP, 'hello', begun + 1);
    relay.rule = HONEST;
    // The box gives up waiting and says hello anew.
    await relay.message(DOWN, 'welcome', welcomed + 1);
    await eventually('online', async () => (await box.status()).online);
    const [live = ''] = relay.messages(UP, 'hello').slice(-1);
    const refuses = async (at: TestGateway, expected: readonly (readonly [string, string])[]) => {
      for (const [code, hello] of expected) expect(await refusedByGateway(relay, at, hello)).toBe(code);
      expect(await pushed(at, `AFTER${relay.seen.length}`)).toEqual(SUCCESS);
      expect(at.log.filter((it) => it.event === 'box-superseded')).toEqual([]);
    };
    await refuses(gateway, [
      ['MESSAGE_REPLAYED', first],
      ['MESSAGE_REORDERED', held],
      ['MESSAGE_REPLAYED', live],
    ]);
    const forged = forgery(relay, said(live) ?? {}, crypto.randomUUID(), { from: 'box' });
    expect(await refusedByGateway(relay, gateway, forged)).toBe('KEY_UNKNOWN');

    await box.close();
    const again = await startRealBox(BOX1, { transport: 'mqtt', url: relay.url }, box.dataDir);
    await refuses(gateway, [
      ['MESSAGE_REORDERED', held],
      ['MESSAGE_REPLAYED', live],
    ]);
    const before = relay.messages(DOWN, 'welcome').length;
    await gateway.close();
    const next = await startGatewayAt(relay, dataDir);
    await relay.message(DOWN, 'welcome', before + 1);
    await eventually('online', async () => (await again.status()).online);
    const all = relay.messages(UP, 'hello').slice(0, -1);
    expect(all.length).toBeGreaterThanOrEqual(4);
    await refuses(
      next,
      all.map((hello) => ['MESSAGE_REPLAYED', hello] as const),
    );
  });

  it('THR-19 a hostile broker can only keep a box from working, which people see at the box and at the gateway', async () => {
    const { relay, gateway, box } = await stage(2_000);
    const isOnline = async () => (await box.status()).online;
    relay.rule = holding(BOX1.terminalCode, 'show');
    expect(await pushed(gateway, 'DROPPED')).toEqual({ status: 'FAILED', message: 'BOX_TIMEOUT' });
    relay.rule = HONEST;
    await relay.inject(PRESENCE, relay.wills.get(BOX1.terminalCode) ?? '');
    await eventually('offline', () => gateway.log.some((it) => it.event === 'box-disconnected'));
    expect(await pushed(gateway, 'OFFLINE')).toEqual({ status: 'FAILED', message: 'BOX_OFFLINE' });
    relay.rule = () => undefined;
    relay.cut(BOX1.terminalCode);
    await eventually('the box to say that it is offline', async () => !(await isOnline()));
    const screen = async () => (await fetch(`${box.origin}/screen.txt`)).text();
    await eventually('its screen to say so', async () => /Mất kết nối|Đang kết nối|Offline/i.test(await screen()));
    relay.rule = HONEST;
    await eventually('the box to be back', isOnline, 60_000);
    await eventually('a push to work', async () => (await pushed(gateway, 'BACK')).status === 'SUCCESS', 60_000);
    const run = JSON.parse(relay.seen.findLast((it) => it.topic === GATEWAY_PRESENCE_TOPIC)?.payload ?? '{}').sessionId;
    await relay.inject(GATEWAY_PRESENCE_TOPIC, JSON.stringify({ v: 1, online: false, sessionId: run }));
    await eventually('the box to lose its gateway', () => box.log.some((it) => /left/.test(String(it.reason))));
    await eventually('the box to be back again', isOnline, 60_000);
  });
});
