import { decodeJwt } from 'jose';
import { describe, expect, it } from 'vitest';
import { boxPresence } from '../../src/protocol/codec.ts';
import { loginOf } from '../../src/protocol/keys.ts';
import { boxTopic, GATEWAY_PRESENCE_TOPIC } from '../../src/protocol/topics.ts';
import { connectFakeBox } from '../support/fake-box.ts';
import { eventually } from '../support/net.ts';
import { BOX1, BOX2, type TestGateway, testGateway } from './harness.ts';
import { loginAs, sayHello } from './mqtt-login.ts';

const UUID = expect.stringMatching(/^[0-9a-f-]{36}$/);
const refusals = (gateway: TestGateway) => gateway.logged('message-refused');
const isOnline = async (gateway: TestGateway) =>
  (await gateway.mock<{ online: boolean }>(`/boxes/${BOX1.terminalCode}`)).online;
const presence = (online: boolean, sessionId: string) => boxPresence(BOX1, sessionId, online);

describe('a box over MQTT', () => {
  it('TOP-1 a box over MQTT gets messages with QoS 1 on its own topic, and none is retained', async () => {
    const gateway = await testGateway();
    const watcher = await loginAs(gateway, BOX1);
    await watcher.client.subscribeAsync(boxTopic(BOX1.terminalCode, 'down'), { qos: 1 });
    await connectFakeBox({ gateway, identity: BOX1, transport: 'mqtt' });
    expect((await gateway.sendQr()).status).toBe(200);
    const told = await eventually('welcome and show', () => watcher.received.length === 2 && watcher.received);
    expect(told.map((it) => decodeJwt<{ type: string }>(it.payload).type)).toEqual(['welcome', 'show']);
    for (const { topic, qos, retain } of told) {
      expect({ topic, qos, retain }).toEqual({ topic: 'paybox/v1/boxes/VVB000001/down', qos: 1, retain: false });
    }
    const late = await loginAs(gateway, BOX1);
    await late.client.subscribeAsync([boxTopic(BOX1.terminalCode, 'down'), GATEWAY_PRESENCE_TOPIC], { qos: 1 });
    await eventually('the retained presence', () => late.received.length > 0);
    expect(late.received.map((it) => it.topic)).toEqual([GATEWAY_PRESENCE_TOPIC]);
  });

  it('PRE-1 PRE-2 a box over MQTT finds the retained birth of the gateway', async () => {
    const gateway = await testGateway();
    const { client, received } = await loginAs(gateway, BOX1);
    await client.subscribeAsync(GATEWAY_PRESENCE_TOPIC, { qos: 1 });
    const [birth] = await eventually('the birth', () => received.length > 0 && received);
    expect(birth).toMatchObject({ topic: 'paybox/v1/gateway/presence', retain: true, qos: 1 });
    expect(JSON.parse(birth?.payload ?? '')).toEqual({ v: 1, online: true, sessionId: UUID });
  });

  it('PRE-3 a box over MQTT is offline with the presence of its session, and not with that of an earlier one', async () => {
    const gateway = await testGateway();
    const box = await connectFakeBox({ gateway, identity: BOX1, transport: 'mqtt' });
    const { client } = await loginAs(gateway, BOX1);
    const topic = boxTopic(BOX1.terminalCode, 'presence');
    await client.publishAsync(topic, presence(false, crypto.randomUUID()), { qos: 1, retain: true });
    // What is refused is logged in the order of its arrival: the presence before it was seen.
    await client.publishAsync(topic, 'no presence', { qos: 1 });
    await eventually('the refusal', () => refusals(gateway).length === 1);
    expect(await isOnline(gateway)).toBe(true);
    await client.publishAsync(topic, presence(false, box.sessionId), { qos: 1, retain: true });
    await eventually('offline', async () => !(await isOnline(gateway)));
    expect((await gateway.sendQr()).body.message).toBe('BOX_OFFLINE');
  });

  it('PRE-3 THR-26 a box over MQTT is not offline because somebody with its login says so, nor by the proof of something else', async () => {
    const gateway = await testGateway();
    const box = await connectFakeBox({ gateway, identity: BOX1, transport: 'mqtt' });
    const { client } = await loginAs(gateway, BOX1);
    const { sessionId } = box;
    const said = { v: 1, online: false, sessionId };
    const proofOf = (it: string) => JSON.parse(it).proof;
    const proofs = [
      undefined,
      '',
      proofOf(boxPresence({ ...BOX1, secret: loginOf(BOX1.secret) }, sessionId, false)),
      proofOf(boxPresence(BOX1, crypto.randomUUID(), false)),
      proofOf(boxPresence({ ...BOX1, terminalCode: BOX2.terminalCode }, sessionId, false)),
    ];
    for (const proof of proofs) {
      await client.publishAsync(boxTopic(BOX1.terminalCode, 'presence'), JSON.stringify({ ...said, proof }), {
        qos: 1,
      });
    }
    await eventually('the refusals', () => refusals(gateway).length === proofs.length);
    expect(new Set(refusals(gateway).map((it) => it.code))).toEqual(new Set(['SIGNATURE_INVALID']));
    expect(await isOnline(gateway)).toBe(true);
    expect((await gateway.sendQr()).body.status).toBe('SUCCESS');
  });

  it('MSG-12 a box that speaks in a session that is over is told so by name, whatever it sends, but not for each message', async () => {
    const gateway = await testGateway();
    const box = await connectFakeBox({ gateway, identity: BOX1, transport: 'mqtt' });
    const { client } = await loginAs(gateway, BOX1);
    const topic = boxTopic(BOX1.terminalCode, 'presence');
    await client.publishAsync(topic, boxPresence(BOX1, box.sessionId, false), { qos: 1 });
    await eventually('offline', async () => !(await isOnline(gateway)));
    for (let n = 0; n < 5; n += 1) await box.send({ type: 'alive' });
    expect(await box.next('refused')).toMatchObject({ code: 'SESSION_ENDED', sessionId: box.sessionId });
    await eventually('all of them', () => refusals(gateway).length === 5);
    expect(box.of('refused')).toHaveLength(1);
    // What nobody has sealed is answered by nothing.
    await client.publishAsync(boxTopic(BOX1.terminalCode, 'up'), '{}', { qos: 1 });
    await eventually('the refusal', () => refusals(gateway).length === 6);
    expect(box.of('refused')).toHaveLength(1);
    expect(box.heard).toEqual([]);
  });

  it('PRE-3 a box over MQTT is offline when its only connection ends without a last will', async () => {
    const gateway = await testGateway();
    const login = await loginAs(gateway, BOX1);
    await sayHello(login, BOX1);
    await eventually('online', () => isOnline(gateway));
    await login.client.endAsync();
    await eventually('offline', async () => !(await isOnline(gateway)));
  });

  it('MSG-3 an illegal message of a box over MQTT changes nothing, and is logged once', async () => {
    const gateway = await testGateway();
    const box = await connectFakeBox({ gateway, identity: BOX1, transport: 'mqtt' });
    const { client } = await loginAs(gateway, BOX1);
    const payloads = [
      ...['', 'x', '[]', 'null', '{}', '{"v":1,"type":"hel', '['.repeat(8000), ' '.repeat(16_385)],
      Buffer.from([0x7b, 0xff, 0xfe, 0x7d]),
      '{"v":2,"id":"3b241101-e2bb-4255-8caf-4136c566a962","sentAtMs":1,"type":"shown"}',
      JSON.stringify({ v: 1, id: crypto.randomUUID(), sentAtMs: 1, type: 'ack' }),
    ];
    for (const [at, payload] of payloads.entries()) {
      for (const channel of ['up', 'presence'] as const) {
        await client.publishAsync(boxTopic(BOX1.terminalCode, channel), payload, { qos: 1 });
      }
      // Handled after the illegal ones, as it came after them.
      expect((await gateway.sendQr({ orderId: `DH${at}` })).status).toBe(200);
      const what = String(payload).slice(0, 100);
      expect([what, refusals(gateway).slice(2 * at)]).toMatchObject([
        what,
        [
          { topic: boxTopic(BOX1.terminalCode, 'up'), code: 'MESSAGE_ILLEGAL', reason: expect.any(String) },
          { topic: boxTopic(BOX1.terminalCode, 'presence'), code: 'E46', reason: expect.any(String) },
        ],
      ]);
    }
    expect(await isOnline(gateway)).toBe(true);
    expect(box.received.map((it) => it.type)).toEqual(['welcome', ...payloads.map(() => 'show')]);
  });

  it('TOP-2 TOP-3 a box over MQTT says hello with its own login only', async () => {
    const gateway = await testGateway();
    const other = await connectFakeBox({ gateway, identity: BOX2, transport: 'mqtt', hello: false });
    const { terminalCode, serialNumber } = BOX1;
    await other.hello({ terminalCode, serialNumber });
    expect((await other.next('refused')).code).toBe('NOT_REGISTERED');
    expect(await isOnline(gateway)).toBe(false);
  });
});
