import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { Aedes } from 'aedes';
import { describe, expect, it, onTestFinished } from 'vitest';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';
import { boxTopic, GATEWAY_PRESENCE_TOPIC } from '../../src/protocol/topics.ts';
import { connectFakeBox } from '../support/fake-box.ts';
import { eventually, freePort } from '../support/net.ts';
import { startProxy } from '../support/proxy.ts';
import { BOX1, BOX2, testGateway } from './harness.ts';
import { loginAs } from './mqtt-login.ts';

/** A busy machine may fire timers and deliver bytes this late. */
const SLOW_MACHINE_MS = 5_000;

const urlOf = (server: Server) => `mqtt://127.0.0.1:${(server.address() as AddressInfo).port}`;

async function listening(handle: (socket: Socket) => void, port = 0) {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    handle(socket);
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  const stop = () => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  onTestFinished(stop);
  return { url: urlOf(server), stop };
}

/** A broker that lets everybody do everything. */
async function openBroker(port = 0) {
  const aedes = await Aedes.createBroker();
  const { url, stop } = await listening((socket) => aedes.handle(socket), port);
  const close = async () => {
    stop();
    await new Promise<void>((resolve) => aedes.close(resolve));
  };
  onTestFinished(close);
  return { url, aedes, close };
}

/** A cable to a broker that can be cut at the broker's end, late. */
async function cable(url: string) {
  const farEnds: Socket[] = [];
  const { url: here, stop } = await listening((socket) => {
    const far = connect(Number(new URL(url).port), '127.0.0.1');
    far.on('error', () => undefined);
    farEnds.push(far);
    socket.pipe(far).pipe(socket);
  });
  return { url: here, cut: () => [stop, ...farEnds.map((it) => () => it.destroy())].map((end) => end()) };
}

type Grant = Aedes['authorizeSubscribe'];

/** A way to a broker on which every subscription is granted QoS 0. */
async function withoutQos1(url: string): Promise<string> {
  const { url: here } = await listening((socket) => {
    const far = connect(Number(new URL(url).port), '127.0.0.1');
    far.on('error', () => undefined);
    far.on('data', (bytes) => {
      const SUBACK = 0x90;
      // Behind its length and the number of the packet are the grants.
      if (bytes[0] === SUBACK) bytes.fill(0, 4);
      socket.write(bytes);
    });
    socket.pipe(far);
  });
  return here;
}

/** A way to a broker whose connection with this number ends, or goes on without it, at the answer to its subscription. */
async function failingAtSubscription(url: string, { at, how }: { at: number; how: 'ends' | 'gets no grant' }) {
  const near: Socket[] = [];
  const { url: here } = await listening((socket) => {
    const number = near.push(socket);
    const far = connect(Number(new URL(url).port), '127.0.0.1');
    far.on('error', () => undefined);
    socket.on('close', () => far.destroy());
    far.on('data', (bytes) => {
      const SUBACK = 0x90;
      if (number !== at || bytes[0] !== SUBACK) socket.write(bytes);
      else if (how === 'ends') socket.destroy();
    });
    socket.pipe(far);
  });
  return { url: here, connections: () => near.length, cut: () => near.at(-1)?.destroy() };
}

const gatewayAt = (url: string) => testGateway({ config: { mqtt: { url } } });

/** Everything that the gateways say of their presence from now on; the retained one first. */
async function presences(url: string) {
  const { client, received } = await loginAs({ mqttUrl: url }, BOX1);
  await client.subscribeAsync(GATEWAY_PRESENCE_TOPIC, { qos: 1 });
  return () => received.map((it) => JSON.parse(it.payload) as { online: boolean; sessionId: string });
}

/** What a box that comes now is told. */
async function retained(url: string) {
  const said = await presences(url);
  return (await eventually('the presence', () => said().length > 0 && said()))[0];
}

describe('a gateway on an external broker', () => {
  it('PRE-2 a gateway on an external broker publishes that it is there, and that it leaves; each run is another', async () => {
    const { url } = await openBroker();
    const first = await gatewayAt(url);
    const birth = await retained(url);
    expect(birth).toMatchObject({ online: true });
    await first.close();
    expect(await retained(url)).toEqual({ ...birth, online: false });
    expect(first.logged('gateway-presence-restored')).toEqual([]);
    await gatewayAt(url);
    const next = await retained(url);
    expect(next).toMatchObject({ online: true });
    expect(next?.sessionId).not.toBe(birth?.sessionId);
  });

  it('PRE-2 a gateway publishes that it is there again after the late last will of an earlier run', async () => {
    const { url } = await openBroker();
    const oldWay = await cable(url);
    await gatewayAt(oldWay.url);
    const old = await retained(url);
    const gateway = await gatewayAt(url);
    const said = await presences(url);
    const birth = (await eventually('the new run', () => said().length > 0 && said()))[0];
    expect(birth?.sessionId).not.toBe(old?.sessionId);
    oldWay.cut();
    await eventually('the late will and what follows', () => said().length === 3);
    expect(said()).toEqual([birth, { ...old, online: false }, birth]);
    expect(await retained(url)).toEqual(birth);
    await connectFakeBox({ gateway, identity: BOX1, transport: 'mqtt' });
    expect((await gateway.sendQr()).status).toBe(200);
  });

  it.each(['', 'nonsense', '{"v":1,"online":false,"sessionId":"3b241101-e2bb-4255-8caf-4136c566a962"}'])(
    'PRE-2 is there again after anyone wrote "%s" on its topic',
    async (payload) => {
      const { url } = await openBroker();
      const gateway = await gatewayAt(url);
      const birth = await retained(url);
      const { client } = await loginAs({ mqttUrl: url }, BOX1);
      await client.publishAsync(GATEWAY_PRESENCE_TOPIC, payload, { qos: 1, retain: true });
      await eventually('the restoring', () => gateway.logged('gateway-presence-restored').length === 1);
      await eventually('the birth', async () => (await retained(url))?.sessionId === birth?.sessionId);
      expect(await retained(url)).toEqual(birth);
    },
  );

  it('PRE-2 a gateway names a second gateway on the broker, and does not fight with it', async () => {
    const { url } = await openBroker();
    const first = await gatewayAt(url);
    const second = await gatewayAt(url);
    await eventually('the warning', () => first.logged('broker-shared').length === 1);
    expect(second.logged('broker-shared')).toEqual([]);
    for (const it of [first, second]) expect(it.logged('gateway-presence-restored')).toEqual([]);
  });

  it('PRE-4 a gateway sends a box that asks its run, and no other box', async () => {
    const { url } = await openBroker();
    const gateway = await gatewayAt(url);
    const birth = await retained(url);
    const { client, received } = await loginAs({ mqttUrl: url }, BOX1);
    await client.subscribeAsync('paybox/v1/boxes/+/down', { qos: 1 });
    const ask = { v: 1, online: true, sessionId: crypto.randomUUID(), asks: true };
    const said = { qos: 1, retain: true } as const;
    await client.publishAsync(boxTopic(BOX1.terminalCode, 'presence'), JSON.stringify(ask), said);
    await eventually('the answer', () => received.length > 0);
    expect(received).toMatchObject([{ topic: boxTopic(BOX1.terminalCode, 'down') }]);
    expect(JSON.parse(received[0]?.payload ?? '')).toEqual(birth);
    // Who subscribes anew, as the next run does, is sent the retained question, and answers it no more.
    await gateway.close();
    await gatewayAt(url);
    await client.publishAsync(boxTopic(BOX2.terminalCode, 'presence'), JSON.stringify(ask), said);
    await eventually('the next answer', () => received.length > 1);
    expect(received.map(({ topic }) => topic)).toEqual([BOX1, BOX2].map((it) => boxTopic(it.terminalCode, 'down')));
  });

  it.each<[broken: string, breaks: (aedes: Aedes) => unknown, reason: string]>([
    ['delivers nothing', (it) => Object.assign(it, { authorizeForward: () => null }), 'delivers it to nobody'],
    [
      'lets it read nothing',
      (it) => Object.assign(it, { authorizeSubscribe: ((_client, _topic, done) => done(null, null)) satisfies Grant }),
      'does not let the gateway read',
    ],
  ])('PRE-5 a gateway refuses a broker that %s, by name', async (_broken, breaks, reason) => {
    const { url, aedes } = await openBroker();
    breaks(aedes);
    await expect(gatewayAt(url)).rejects.toMatchObject({
      message: expect.stringMatching(new RegExp(`${new URL(url).host} .*${reason}`)),
      fix: expect.stringContaining('topic rights'),
    });
  });

  it('PRE-5 a gateway refuses a broker that grants no QoS 1, by name', async () => {
    const url = await withoutQos1((await openBroker()).url);
    await expect(gatewayAt(url)).rejects.toThrow(`${new URL(url).host} cannot be used: it grants no QoS 1`);
  });

  it.each(['ends', 'gets no grant'] as const)(
    'PRE-5 dials again when a connection %s before it is whole',
    async (how) => {
      const { url } = await openBroker();
      const way = await failingAtSubscription(url, { at: 2, how });
      const clock = new VirtualClock(Date.now());
      const gateway = await testGateway({ config: { mqtt: { url: way.url } }, clock });
      way.cut();
      await eventually('the second connection', async () => {
        await clock.advance(1_000);
        return way.connections() === 2;
      });
      await eventually('a whole connection', async () => {
        await clock.advance(1_000);
        return way.connections() > 2 && gateway.logged('broker-reconnected').length > 0;
      });
      expect(gateway.logged('broker-unreachable').length).toBeGreaterThan(0);
    },
  );

  it('PRE-5 a gateway opens its connection anew when the broker has lost a subscription and no box is received any more', async () => {
    const clock = new VirtualClock();
    const { url, aedes } = await openBroker();
    const gateway = await testGateway({ config: { mqtt: { url } }, clock });
    await connectFakeBox({ gateway, identity: BOX1, transport: 'mqtt' });
    const birth = await retained(url);
    aedes.authorizeForward = (client, packet) => (client.id.startsWith('gateway-') ? null : packet);
    await clock.advance(24_000);
    expect(gateway.logged('broker-silent')).toEqual([]);
    aedes.authorizeForward = (_client, packet) => packet;
    await clock.advance(8_000);
    expect(gateway.logged('broker-silent')).toHaveLength(1);
    await eventually('the new run', async () => {
      await clock.advance(500);
      return gateway.logged('broker-reconnected').length === 1;
    });
    expect((await retained(url))?.sessionId).not.toBe(birth?.sessionId);
  });

  it('TOP-1 MSG-3 a gateway ignores a message that the broker retained', async () => {
    const { url } = await openBroker();
    const { client } = await loginAs({ mqttUrl: url }, BOX1);
    const { terminalCode, serialNumber } = BOX1;
    const hello = { v: 1, id: crypto.randomUUID(), sentAtMs: 1, type: 'hello', sessionId: crypto.randomUUID() };
    const text = JSON.stringify({
      ...hello,
      terminalCode,
      serialNumber,
      agentVersion: '',
      display: '',
      shownPushId: null,
    });
    await client.publishAsync(boxTopic(terminalCode, 'up'), text, { qos: 1, retain: true });
    const gateway = await gatewayAt(url);
    await eventually('the refusal', () => gateway.logged('message-refused').length === 1);
    expect(gateway.logged('box-connected')).toEqual([]);
  });

  it('SND-5 PRE-2 a gateway loses its boxes with the broker, and is there again as a new run when it is back', async () => {
    const port = await freePort();
    const broker = await openBroker(port);
    const gateway = await gatewayAt(broker.url);
    const birth = await retained(broker.url);
    const box = await connectFakeBox({ gateway, identity: BOX1, transport: 'mqtt', onShow: () => undefined });
    const answered = gateway.sendQr();
    await box.next('show');
    await broker.close();
    expect((await answered).body.message).toBe('BOX_OFFLINE');
    const health = async () => (await fetch(`${gateway.origin}/healthz`)).status;
    expect(await health()).toBe(503);
    const ready = await fetch(`${gateway.origin}/readyz`);
    const reason = 'the MQTT broker is not connected';
    expect([ready.status, await ready.json()]).toEqual([503, { status: 'failed', reason }]);
    const again = await openBroker(port);
    await eventually('the gateway is back', () => gateway.logged('broker-reconnected').length === 1);
    const next = await retained(again.url);
    expect(next?.online).toBe(true);
    expect(next?.sessionId).not.toBe(birth?.sessionId);
    await connectFakeBox({ gateway, identity: BOX1, transport: 'mqtt' });
    expect((await gateway.sendQr()).status).toBe(200);
    await eventually('health', async () => (await health()) === 200);
  });

  it('TOP-4 SND-5 a gateway finds a half-open connection to its broker within 1.5 keepalives, and loses its boxes', async () => {
    const { url } = await openBroker();
    const proxy = await startProxy({ port: Number(new URL(url).port) });
    onTestFinished(() => proxy.close());
    const gateway = await gatewayAt(`mqtt://127.0.0.1:${proxy.port}`);
    await connectFakeBox({ gateway: { origin: '', mqttUrl: url }, identity: BOX1, transport: 'mqtt' });
    proxy.abandon();
    const lost = () => gateway.logged('box-disconnected').length === 1;
    await eventually('the box to be lost', lost, 1.5 * 15_000 + SLOW_MACHINE_MS);
    await eventually('the gateway is back', () => gateway.logged('broker-reconnected').length === 1);
  });

  it('TOP-4 a gateway gives up a broker that answers pings but acknowledges no message for 15 s', async () => {
    const clock = new VirtualClock();
    const { url, aedes } = await openBroker();
    const gateway = await testGateway({ config: { mqtt: { url } }, clock });
    await connectFakeBox({ gateway, identity: BOX1, transport: 'mqtt', onShow: () => undefined });
    aedes.authorizePublish = (_client, packet, done) => {
      if (packet.topic !== boxTopic(BOX1.terminalCode, 'down')) done(null);
    };
    const refused = async () => {
      const answer = gateway.sendQr({ orderId: crypto.randomUUID() });
      await eventually('the push', () => clock.sleeping().includes(5_000));
      await clock.advance(5_000);
      return (await answer).body.message;
    };
    expect(await refused()).toBe('BOX_TIMEOUT');
    await clock.advance(11_000);
    expect(gateway.logged('broker-reconnected')).toEqual([]);
    const next = gateway.sendQr({ orderId: crypto.randomUUID() });
    expect((await next).body.message).toBe('BOX_OFFLINE');
    const reasons = gateway.logged('message-not-sent').map((it) => it.reason);
    expect(reasons).toContain('a message is not acknowledged for 15000 ms');
  });

  it('a gateway names the broker that is not there, and what to do', async () => {
    const url = `mqtt://127.0.0.1:${await freePort()}`;
    await expect(gatewayAt(url)).rejects.toMatchObject({
      message: expect.stringContaining(new URL(url).host),
      fix: expect.stringContaining('mqtt.url'),
    });
  });
});
