import { describe, expect, it } from 'vitest';
import { connectFakeBox, type FakeBoxOptions } from '../support/fake-box.ts';
import { eventually } from '../support/net.ts';
import {
  ACCOUNT,
  BOX1,
  BOX2,
  BOX3,
  partnerServer,
  processed,
  qrFor,
  type TestGateway,
  testGateway,
} from './harness.ts';

const online = async (gateway: TestGateway) =>
  (await gateway.mock('/boxes')).filter((it) => it.online).map((it) => it.terminalCode);

describe.each(['mqtt', 'http'] as const)('a session over %s', (transport) => {
  const connecting =
    (gateway: TestGateway) =>
    (change: Partial<FakeBoxOptions> = {}) =>
      connectFakeBox({ gateway, identity: BOX1, transport, ...change });

  it('MSG-2 MSG-4 a session begins with the welcome, which names the linked account', async () => {
    const gateway = await testGateway();
    const box = await connecting(gateway)();
    const { bankAccount, bankCode, userBankName } = ACCOUNT;
    expect(box.received).toMatchObject([
      { type: 'welcome', sessionId: box.sessionId, link: { bankAccount, bankCode, userBankName } },
    ]);
    expect(await gateway.mock<unknown>(`/boxes/${BOX1.terminalCode}`)).toMatchObject({
      online: true,
      transport,
      sessionId: box.sessionId,
      agentVersion: 'fake',
      display: 'fake',
    });
  });

  it('MSG-10 a session begins with the pushes that the box may show', async () => {
    const gateway = await testGateway({ callback: { url: (await partnerServer(processed)).url } });
    const connect = connecting(gateway);
    const openPushIds = async (shownPushId: string) => {
      const box = await connect({ onShow: () => undefined, shownPushId });
      const open = (await box.next('welcome')).openPushIds;
      await box.close();
      return open;
    };
    const box = await connect();
    await gateway.sendQr();
    const first = (await box.next('show')).pushId;
    await gateway.sendQr({ orderId: 'DH002', content: 'DH002', qrCode: qrFor({ purpose: 'DH002' }) });
    const second = (await box.next('show', 2)).pushId;
    await box.send({ type: 'ended', pushId: first, orderId: 'DH001', how: 'replaced' }, first);
    await box.next('ack');
    expect(await openPushIds(second)).toEqual([second]);
    await gateway.testCallback({ content: 'DH002' });
    expect(await openPushIds(second)).toEqual([]);
    const again = await connect();
    await gateway.sendQr({ orderId: 'DH002', content: 'DH002', qrCode: qrFor({ purpose: 'DH002' }) });
    const { pushId } = await again.next('show');
    expect(await openPushIds(pushId)).toEqual([pushId]);
    // A box that shows it no more has lost it, and does not get it back by saying otherwise later.
    expect(await openPushIds(second)).toEqual([]);
    expect(await openPushIds(pushId)).toEqual([]);
  });

  it('MSG-4 a session begins with null for a box that is not linked', async () => {
    const gateway = await testGateway();
    const box = await connecting(gateway)({ identity: BOX3 });
    expect((await box.next('welcome')).link).toBeNull();
  });

  it.each([
    ['another serial number', { serialNumber: BOX2.serialNumber }],
    ['the identity of another box', { terminalCode: BOX2.terminalCode, serialNumber: BOX2.serialNumber }],
    ['no box at all', { terminalCode: 'VVB999999', serialNumber: 'VVB999999' }],
  ])('MSG-4 is refused for %s', async (_name, change) => {
    const gateway = await testGateway();
    const box = await connecting(gateway)({ hello: false });
    await box.hello(change);
    expect(await box.next('refused')).toMatchObject({ sessionId: box.sessionId, code: 'NOT_REGISTERED' });
    expect(box.of('welcome')).toEqual([]);
    expect(await online(gateway)).toEqual([]);
    expect(gateway.logged('box-refused')).toHaveLength(1);
    expect((await gateway.sendQr()).body.message).toBe('BOX_OFFLINE');
  });

  it('MSG-4 a session ignores what comes before the welcome', async () => {
    const gateway = await testGateway({ callback: { url: (await partnerServer(processed)).url } });
    await gateway.testCallback();
    const [payment] = await gateway.mock('/payments');
    const box = await connecting(gateway)({ hello: false });
    const transactionId = String(payment?.transactionId);
    const paid = { type: 'paid', transactionId, orderId: '', amount: 50_000, recorded: true } as const;
    // Over HTTP the box is told so at once.
    await box.send(paid, transactionId).catch(() => undefined);
    const refusals = () => [...gateway.logged('message-refused'), ...gateway.logged('request-refused')];
    await eventually('the refusal', () => refusals().length === 1);
    await box.hello();
    expect(await box.next('payment')).toMatchObject({ transactionId });
    expect(box.received.map((it) => it.type)).toEqual(['welcome', 'payment']);
  });

  it('MSG-4 a session lasts, however often an agent with the secret but another serial number asks for one', async () => {
    const gateway = await testGateway();
    const connect = connecting(gateway);
    const box = await connect();
    for (let nth = 1; nth <= 9; nth += 1) {
      const stranger = await connect({ hello: false });
      await stranger.hello({ serialNumber: BOX2.serialNumber });
      await stranger.next('refused');
      await stranger.close();
    }
    expect((await gateway.sendQr()).body.status).toBe('SUCCESS');
    expect(box.of('show')).toHaveLength(1);
    expect(gateway.logged('message-refused')).toEqual([]);
    expect(gateway.logged('box-disconnected')).toEqual([]);
  });

  it('MSG-11 a session answers each heartbeat, and the gateway does not list that among its messages', async () => {
    const gateway = await testGateway();
    const box = await connecting(gateway)();
    await Promise.all(Array.from({ length: 3 }, () => box.send({ type: 'alive' })));
    await eventually('three answers', () => box.heard.length === 3);
    expect(box.heard).toEqual(box.alive);
    const wire = await gateway.mock<{ entries: { body?: { type?: string } }[] }>('/wire');
    expect(wire.entries.filter(({ body }) => body?.type === 'alive' || body?.type === 'heard')).toEqual([]);
  });

  it('MSG-8 a session ends the older one, which is told', async () => {
    const gateway = await testGateway();
    const connect = connecting(gateway);
    const older = await connect();
    const newer = await connect();
    const { sessionId } = older;
    expect(await older.next('refused')).toMatchObject({ sessionId, code: 'SUPERSEDED' });
    expect(gateway.logged('box-superseded')).toHaveLength(1);
    older.vanish();
    expect((await gateway.sendQr()).status).toBe(200);
    expect(newer.of('show')).toHaveLength(1);
    expect(gateway.logged('box-disconnected')).toEqual([]);
  });

  it('MSG-8 a session is not ended by its own repeated hello', async () => {
    const gateway = await testGateway();
    const box = await connecting(gateway)();
    await box.hello();
    await box.next('welcome', 2);
    expect(box.of('refused')).toEqual([]);
    expect((await gateway.sendQr()).status).toBe(200);
  });

  it('PRE-3 BOX-HTTP-3 a session is over at once when the box vanishes', async () => {
    const gateway = await testGateway();
    const box = await connecting(gateway)();
    expect(await online(gateway)).toEqual([BOX1.terminalCode]);
    box.vanish();
    await eventually('offline', async () => (await online(gateway)).length === 0);
  });

  it('MSG-3 a session drops unknown fields', async () => {
    const gateway = await testGateway();
    const box = await connecting(gateway)({ hello: false });
    const { terminalCode, serialNumber } = BOX1;
    const names = {
      sessionId: box.sessionId,
      terminalCode,
      serialNumber,
      agentVersion: '9',
      display: 'new',
      shownPushId: null,
    };
    const head = { v: 1, id: crypto.randomUUID(), sentAtMs: 1, type: 'hello' };
    await box.sendText(box.sealed({ ...head, ...names, mood: 'good', __proto__x: 1 }));
    await box.next('welcome');
    expect(await gateway.mock<unknown>(`/boxes/${terminalCode}`)).not.toHaveProperty('mood');
  });
});
