import { once } from 'node:events';
import { connect } from 'node:net';
import { connectAsync, type IClientOptions } from 'mqtt';
import { generate, type Packet } from 'mqtt-packet';
import { describe, expect, it, onTestFinished } from 'vitest';
import { loginOf } from '../../src/protocol/keys.ts';
import { boxTopic, GATEWAY_PRESENCE_TOPIC } from '../../src/protocol/topics.ts';
import { connectFakeBox } from '../support/fake-box.ts';
import { eventually } from '../support/net.ts';
import { bareBroker } from './bare-broker.ts';
import { cableTo, others, own } from './broker-peers.ts';
import { BOX1, BOX2, type TestGateway, testGateway } from './harness.ts';
import { loginAs, sayHello } from './mqtt-login.ts';

/** Box 2 works and has heard nothing but its own messages; box 1's login has heard nothing of it. */
async function expectUntouched(gateway: TestGateway): Promise<void> {
  const box2 = await connectFakeBox({ gateway, identity: BOX2, transport: 'mqtt' });
  const { terminalCode, serialNumber } = BOX2;
  expect((await gateway.sendQr({ terminalCode, serialNumber })).status).toBe(200);
  expect(box2.received.map((it) => it.type)).toEqual(['welcome', 'show']);
}

describe('the embedded broker', () => {
  it('TOP-1 TOP-2 refuses a login with another name or secret, or to a session that is kept', async () => {
    const gateway = await testGateway();
    const logins: [change: Partial<typeof BOX1>, options: IClientOptions, code: number][] = [
      [{ secret: 'Secret-of-box-number-2-of-tests' }, {}, 4],
      [{ secret: '' }, {}, 4],
      [{ terminalCode: 'VVB999999' }, {}, 4],
      [{ terminalCode: BOX1.serialNumber }, {}, 4],
      [{ terminalCode: 'gateway' }, {}, 4],
      [{}, { clean: false, clientId: 'kept' }, 5],
    ];
    for (const [at, [change, options, code]] of logins.entries()) {
      await expect(loginAs(gateway, { ...BOX1, ...change }, options)).rejects.toMatchObject({ code });
      expect(gateway.logged('mqtt-login-refused')).toHaveLength(at + 1);
    }
    expect(JSON.stringify(gateway.log)).not.toContain('secret-of-box');
  });

  it('TOP-2 refuses a login without a name', async () => {
    const gateway = await testGateway();
    const nameless = connectAsync(gateway.mqttUrl ?? '', { reconnectPeriod: 0 }, false);
    await expect(nameless).rejects.toMatchObject({ code: 4 });
  });

  it('TOP-3 ends the connection of a box that publishes to any topic but its own', async () => {
    const gateway = await testGateway();
    const topics = [
      ...[boxTopic(own, 'down'), boxTopic(others, 'down'), boxTopic(others, 'up'), boxTopic(others, 'presence')],
      ...[GATEWAY_PRESENCE_TOPIC, `${boxTopic(own, 'up')}/`, `/${boxTopic(own, 'up')}`],
      ...[boxTopic(own, 'up').toUpperCase(), '$SYS/broker', 'anything'],
    ];
    for (const topic of topics) {
      for (const options of [{ qos: 1, retain: true } as const, { qos: 0 } as const, { qos: 2 } as const]) {
        const { client, ended } = await loginAs(gateway, BOX1);
        client.publish(topic, '{"v":1}', options);
        await ended;
      }
      expect(gateway.logged('mqtt-publish-refused').filter((it) => it.topic === topic)).toHaveLength(3);
    }
    expect(gateway.logged('message-refused')).toEqual([]);
    const { client, received } = await loginAs(gateway, BOX1);
    await client.subscribeAsync([boxTopic(own, 'down'), GATEWAY_PRESENCE_TOPIC], { qos: 1 });
    await eventually('the presence', () => received.length > 0);
    expect(received.map((it) => JSON.parse(it.payload))).toMatchObject([{ online: true }]);
    await expectUntouched(gateway);
  });

  it('TOP-3 ends the connection of a box that retains a message to the gateway', async () => {
    const gateway = await testGateway();
    const { client, ended } = await loginAs(gateway, BOX1);
    client.publish(boxTopic(own, 'up'), '{}', { qos: 1, retain: true });
    await ended;
    expect(gateway.logged('message-refused')).toEqual([]);
  });

  it('TOP-3 refuses a box every subscription but its own', async () => {
    const gateway = await testGateway();
    for (const filter of [
      ...['#', '+', '+/#', '$SYS/#', 'paybox/#', 'paybox/v1/boxes/+/down', 'paybox/v1/gateway/+', 'a+', 'a/#/b'],
      ...[`paybox/v1/boxes/${own}/+`, `paybox/v1/boxes/${own}/#`],
      ...[`$share/all/${boxTopic(own, 'down')}`, `$share/all/${boxTopic(others, 'down')}`],
      ...[boxTopic(own, 'up'), boxTopic(own, 'presence'), boxTopic(others, 'down'), boxTopic(others, 'up')],
    ]) {
      const { client, received, ended, refused } = await loginAs(gateway, BOX1);
      expect([filter, await Promise.race([refused(filter), ended.then(() => true)])]).toEqual([filter, true]);
      await expectUntouched(gateway);
      expect(received).toEqual([]);
      await client.endAsync(true);
    }
  });

  it('TOP-3 grants of several subscriptions only those that are allowed', async () => {
    const gateway = await testGateway();
    const { client, received } = await loginAs(gateway, BOX1);
    const filters = [boxTopic(others, 'down'), GATEWAY_PRESENCE_TOPIC, '#'];
    await client.subscribeAsync(filters, { qos: 1 }).catch(() => undefined);
    await eventually('the presence', () => received.length > 0);
    await expectUntouched(gateway);
    expect(received.map((it) => it.topic)).toEqual([GATEWAY_PRESENCE_TOPIC]);
  });

  it('TOP-3 refuses every last will but the retained one on its presence', async () => {
    const gateway = await testGateway();
    const wills: [topic: string, retain: boolean][] = [
      [GATEWAY_PRESENCE_TOPIC, false],
      [boxTopic(others, 'presence'), true],
      [boxTopic(others, 'down'), false],
      [boxTopic(own, 'down'), true],
      [boxTopic(own, 'up'), true],
    ];
    for (const [at, [topic, retain]] of wills.entries()) {
      const will = { topic, payload: Buffer.from('{}'), qos: 1 as const, retain };
      await expect(loginAs(gateway, BOX1, { will })).rejects.toThrow();
      expect(gateway.logged('mqtt-login-refused')).toHaveLength(at + 1);
    }
    await expectUntouched(gateway);
  });

  it('TOP-3 lets no box take over the connection of another by its client id', async () => {
    const gateway = await testGateway();
    const box1 = await loginAs(gateway, BOX1, { clientId: 'same' });
    await loginAs(gateway, BOX2, { clientId: 'same' });
    await loginAs(gateway, BOX2, { clientId: `${own}/same` });
    await box1.client.publishAsync(boxTopic(own, 'up'), '{}', { qos: 1 });
    expect(box1.client.connected).toBe(true);
  });

  it('LIM-4 ends a connection with a packet over the limit before it has come whole', async () => {
    const gateway = await testGateway();
    const { client, ended } = await loginAs(gateway, BOX1);
    client.publish(boxTopic(own, 'up'), Buffer.alloc(20_000, 'x'), { qos: 1 });
    await ended;
    const reasons = () => gateway.logged('mqtt-connection-failed').map((it) => String(it.reason));
    const reason = /^a packet of 20\d\d\d bytes is refused at its head: at most 17408 bytes are taken$/;
    await eventually('the reason', () => reasons().some((it) => reason.test(it)));
    expect(gateway.logged('message-refused')).toEqual([]);
    await expectUntouched(gateway);
  });

  it.each([
    ['a login of 256 MB', Buffer.from([0x10, 0xff, 0xff, 0xff, 0x7f])],
    ['a length of five bytes', Buffer.from([0x10, 0x80, 0x80, 0x80, 0x80, 0x01])],
    ['a publish before the login', Buffer.from([0x30, 0x03, 0x00, 0x01, 0x61])],
    ['another protocol', Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n')],
    ['MQTT 5', Buffer.from('100f00044d5154540502003c00000261' + '62', 'hex')],
  ])('TOP-1 LIM-4 ends a connection that begins with %s', async (_name, bytes) => {
    const gateway = await testGateway();
    const socket = connect(Number(new URL(gateway.mqttUrl ?? '').port), '127.0.0.1');
    socket.on('error', () => undefined);
    const closed = once(socket, 'close');
    socket.resume();
    socket.write(bytes);
    await closed;
    await expectUntouched(gateway);
  });

  it('THR-10 the embedded broker goes on when a box sends thousands of packets at once', async () => {
    const gateway = await testGateway();
    const { client } = await loginAs(gateway, BOX1);
    const heard = {
      cmd: 'publish',
      topic: boxTopic(own, 'up'),
      payload: '',
      qos: 0,
      dup: false,
      retain: false,
    } as const;
    const unheard: Packet = { cmd: 'subscribe', messageId: 1, subscriptions: [{ topic: 'a', qos: 0 }] };
    // Together less than a socket reads in one go.
    const packets = [...Array(120).fill(generate(heard)), ...Array(7000).fill(generate(unheard))];
    client.stream.write(Buffer.concat(packets));
    await eventually('the last subscription', () => gateway.logged('mqtt-subscribe-refused').length === 7000);
    await eventually('every message', () => gateway.logged('message-refused').length === 120);
    await expectUntouched(gateway);
  });

  it.each([0, 601])('TOP-4 refuses a login with a keepalive of %i s', async (keepalive) => {
    const gateway = await testGateway();
    await expect(loginAs(gateway, BOX1, { keepalive })).rejects.toThrow();
    await loginAs(gateway, BOX1, { keepalive: 600 });
  });

  it('TOP-4 ends a connection that is silent for 1.5 times its keepalive, and its box is offline', async () => {
    const gateway = await testGateway();
    const { proxy, mqttUrl } = await cableTo(gateway.mqttUrl ?? '');
    await sayHello(await loginAs({ mqttUrl }, BOX1, { keepalive: 1 }), BOX1);
    await eventually('online', () => gateway.logged('box-connected').length === 1);
    proxy.stall(['up']);
    await eventually('offline', () => gateway.logged('box-disconnected').length === 1);
    expect(gateway.logged('mqtt-connection-failed')).toMatchObject([{ reason: 'keep alive timeout' }]);
    expect((await gateway.sendQr()).body.message).toBe('BOX_OFFLINE');
  });
});

it('LIM-6 THR-1 idle connections to the broker take no place from a box, neither before its login nor after it', async () => {
  const { broker } = await bareBroker(12);
  const url = new URL(broker.url);
  const idle = (localAddress: string) => {
    const socket = connect({ port: Number(url.port), host: url.hostname, localAddress });
    socket.on('error', () => undefined);
    onTestFinished(() => {
      socket.destroy();
    });
    return new Promise<void>((resolve) => socket.once('connect', resolve));
  };
  const flood = async () => {
    for (const from of ['127.0.0.2', '127.0.0.3']) for (let i = 0; i < 20; i += 1) await idle(from);
  };
  await flood();
  const login = { username: BOX1.terminalCode, password: loginOf(BOX1.secret), reconnectPeriod: 0 };
  const client = await connectAsync(broker.url, login, false);
  onTestFinished(() => void client.end(true));
  await flood();
  await client.subscribeAsync(boxTopic(own, 'down'));
  expect(client.connected).toBe(true);
});
