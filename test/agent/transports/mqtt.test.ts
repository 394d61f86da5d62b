import { createHmac } from 'node:crypto';
import { describe, expect, it, onTestFinished } from 'vitest';
import { INCOMING_MAX } from '../../../src/device/agent/transports/message-queue.ts';
import { mqttTransport } from '../../../src/device/agent/transports/mqtt.ts';
import { VirtualClock } from '../../../src/lib/virtual-clock.ts';
import { encode } from '../../../src/protocol/codec.ts';
import { fakeBroker, IDENTITY } from '../../support/fake-gateway.ts';
import { lightMqtt } from '../../support/light-transport.ts';
import { eventually, freePort } from '../../support/net.ts';
import { startProxy } from '../../support/proxy.ts';
import { boxOver, drain, OTHER_RUN, RUN, shown, withdraw } from './mqtt-peers.ts';

/** As PROTOCOL.md, clause PRE-1, writes it. */
const goneProof = (sessionId: string) =>
  createHmac('sha256', IDENTITY.secret)
    .update(`paybox/v1 gone\n${IDENTITY.terminalCode}\n${sessionId}`)
    .digest('base64url');

describe.each([
  ['the library', mqttTransport.open],
  ['the light client', lightMqtt.open],
])('the MQTT transport over %s', (_client, open) => {
  const box = (url: string, change?: Parameters<typeof boxOver>[2]) => boxOver(open, url, change);

  it('TOP-1 TOP-2 talks MQTT 3.1.1 with QoS 1 on its own topics, and is refused nothing', async () => {
    const broker = await fakeBroker();
    await broker.gatewayIs(true, RUN);
    const session = await box(broker.url).opening;
    const [up, told] = [shown(), withdraw()];
    await session.send(up);
    await broker.tell(encode(told));
    const first = await session.incoming[Symbol.asyncIterator]().next();
    expect(first.value).toEqual(told);
    expect(broker.received).toEqual([up]);
    expect(broker.connects).toMatchObject([{ clean: true, version: 4, keepalive: 15 }]);
    expect(broker.connects[0]?.clientId).toMatch(/^VVB000001-[0-9a-f]{13}$/);
    expect(broker.faults).toEqual([]);
  });

  it('PRE-1 publishes a retained birth, and offline when it says goodbye', async () => {
    const broker = await fakeBroker();
    await broker.gatewayIs(true, RUN);
    const { opening, sessionId } = box(broker.url);
    const session = await opening;
    const ending = drain(session.incoming);
    await Promise.all([session.close(), session.close()]);
    expect(await ending).toEqual({ messages: [], reason: '' });
    expect(broker.presences.map(({ payload, retain, qos }) => ({ ...JSON.parse(payload), retain, qos }))).toEqual([
      { v: 1, online: true, sessionId, retain: true, qos: 1 },
      { v: 1, online: false, sessionId, proof: goneProof(sessionId), retain: true, qos: 1 },
    ]);
    await expect(session.send(shown())).rejects.toMatchObject({ code: 'LINK_LOST' });
  });

  it('PRE-1 leaves a last will that says offline when the line is cut', async () => {
    const broker = await fakeBroker();
    await broker.gatewayIs(true, RUN);
    const { opening, sessionId } = box(broker.url);
    const ending = drain((await opening).incoming);
    broker.cut();
    expect((await ending).reason).toContain('ended the connection');
    const will = await eventually('the will', () => broker.presences[1]);
    expect(JSON.parse(will.payload)).toEqual({ v: 1, online: false, sessionId, proof: goneProof(sessionId) });
    expect(will.retain).toBe(true);
  });

  it('PRE-2 waits for a gateway that comes later', async () => {
    const broker = await fakeBroker();
    await broker.gatewayIs(false, OTHER_RUN);
    const { opening } = box(broker.url);
    let open = false;
    void opening.then(() => {
      open = true;
    });
    await eventually('the birth', () => broker.presences.length === 1);
    expect(open).toBe(false);
    await broker.gatewayIs(true, RUN);
    await opening;
  });

  it('PRE-2 says that the gateway is not there, and leaves the broker', async () => {
    const broker = await fakeBroker();
    const { opening } = box(broker.url, { connectTimeoutMs: 500 });
    await expect(opening).rejects.toMatchObject({ code: 'PEER_MISSING', severity: 'retryable' });
    await expect(opening).rejects.toThrow(/the gateway is not at the broker at mqtt:/);
    expect(broker.presences.map(({ payload }) => JSON.parse(payload).online)).toEqual([true, false]);
  });

  const departures: [string, (broker: Awaited<ReturnType<typeof fakeBroker>>) => Promise<void>, RegExp][] = [
    ['leaves', (broker) => broker.gatewayIs(false, RUN), /left the broker/],
    ['runs anew', (broker) => broker.gatewayIs(true, OTHER_RUN), /was restarted/],
  ];
  for (const [name, depart, reason] of departures) {
    it(`PRE-2 ends the session when the gateway ${name}`, async () => {
      const broker = await fakeBroker();
      await broker.gatewayIs(true, RUN);
      const ending = drain((await box(broker.url).opening).incoming);
      await depart(broker);
      expect((await ending).reason).toMatch(reason);
    });
  }

  it("PRE-2 is not misled by another run's last will, a repeated birth or an illegal presence", async () => {
    const broker = await fakeBroker();
    await broker.gatewayIs(true, RUN);
    const { opening, events } = box(broker.url);
    const session = await opening;
    await broker.gatewayIs(false, OTHER_RUN);
    await broker.gatewayIs(true, RUN);
    await broker.gatewaySays('{"online":false}');
    const told = withdraw();
    await broker.tell(encode(told));
    expect((await session.incoming[Symbol.asyncIterator]().next()).value).toEqual(told);
    expect(events()).toEqual(['gateway-presence-illegal']);
  });

  it('PRE-4 asks where the broker retains nothing, and takes the answer of the gateway', async () => {
    const broker = await fakeBroker();
    const { opening, sessionId, events } = box(broker.url);
    const asked = await eventually('the question', () => broker.presences[1]);
    expect(JSON.parse(asked.payload)).toEqual({ v: 1, online: true, sessionId, asks: true });
    await broker.tell(encode({ v: 1, online: true, sessionId: RUN }));
    const session = await opening;
    await broker.tell(encode({ v: 1, online: true, sessionId: RUN }));
    const told = withdraw();
    await broker.tell(encode(told));
    expect((await session.incoming[Symbol.asyncIterator]().next()).value).toEqual(told);
    expect(events()).toEqual([]);
    expect(broker.faults).toEqual([]);
  });

  it('PRE-4 says hello again where the broker retains a run that is over', async () => {
    const broker = await fakeBroker();
    await broker.gatewayIs(true, OTHER_RUN);
    const { opening } = box(broker.url);
    const session = await opening;
    const said = shown();
    await session.send(said);
    await eventually('the question', () => broker.presences.some(({ payload }) => JSON.parse(payload).asks));
    await broker.tell(encode({ v: 1, online: true, sessionId: RUN }));
    await eventually('the second hello', () => broker.received.length === 2);
    expect(broker.received).toEqual([said, said]);
    const ending = drain(session.incoming);
    await broker.gatewayIs(false, RUN);
    expect((await ending).reason).toContain('left the broker');
  });

  it('PRE-4 asks nothing once the gateway is heard', async () => {
    const clock = new VirtualClock();
    const broker = await fakeBroker();
    await broker.gatewayIs(true, RUN);
    const session = await box(broker.url, { clock }).opening;
    await broker.tell(encode(withdraw()));
    await session.incoming[Symbol.asyncIterator]().next();
    await clock.advance(10_000);
    await session.close();
    expect(broker.presences.filter(({ payload }) => JSON.parse(payload).asks)).toEqual([]);
  });

  it('MSG-3 logs an illegal message once with the reason, and goes on', async () => {
    const broker = await fakeBroker();
    await broker.gatewayIs(true, RUN);
    const { opening, lines } = box(broker.url);
    const session = await opening;
    const told = withdraw();
    const illegal = [
      '',
      '{',
      '{"v":1}',
      Buffer.from([0xff, 0xfe]),
      'x'.repeat(20_000),
      encode({ ...told, v: 2 } as never),
    ];
    for (const payload of illegal) await broker.tell(payload);
    await broker.tell(encode(withdraw()), true);
    await broker.tell(JSON.stringify({ ...told, colour: 'red' }));
    const messages = session.incoming[Symbol.asyncIterator]();
    await messages.next();
    expect((await messages.next()).value).toEqual(told);
    expect(lines.map((line) => JSON.parse(line).event)).toEqual(illegal.map(() => 'message-refused'));
    expect(lines[4]).toContain('20000 bytes');
  });

  it('TOP-1 drops a message that a broker kept from another day', async () => {
    const broker = await fakeBroker();
    await broker.tell(encode(withdraw()), true);
    await broker.gatewayIs(true, RUN);
    const { opening, events } = box(broker.url);
    const session = await opening;
    const told = withdraw();
    await broker.tell(encode(told));
    expect((await session.incoming[Symbol.asyncIterator]().next()).value).toEqual(told);
    expect(events()).toEqual(['message-refused']);
  });

  it('MSG-9 stays when more wait than it keeps, which its gateway says again', async () => {
    const broker = await fakeBroker();
    await broker.gatewayIs(true, RUN);
    const session = await box(broker.url).opening;
    for (let sent = 0; sent < INCOMING_MAX + 50; sent += 1) await broker.tell(encode(withdraw()));
    await session.send(shown());
    await session.close();
    expect((await drain(session.incoming)).messages.length).toBe(INCOMING_MAX);
  });

  it('TOP-2 tells a wrong secret from a broker that is away, and both may pass', async () => {
    const broker = await fakeBroker();
    const wrong = box(broker.url, { secret: 'another-secret' });
    await expect(wrong.opening).rejects.toMatchObject({ code: 'NOT_REGISTERED', severity: 'retryable' });
    await expect(wrong.opening).rejects.not.toThrow(/another-secret/);
    const away = box(`mqtt://127.0.0.1:${await freePort()}`);
    await expect(away.opening).rejects.toMatchObject({ code: 'PEER_MISSING', severity: 'retryable' });
  });

  it('waits for no answer to its goodbye from a broker that is leaving', async () => {
    const broker = await fakeBroker();
    await broker.gatewayIs(true, RUN);
    // Its time stands still, so that the goodbye's deadline never comes.
    const session = await box(broker.url, { clock: new VirtualClock() }).opening;
    broker.cut();
    await session.close();
  });

  /** A box whose way to its broker can be made bad. */
  const overProxy = async (change: Parameters<typeof box>[1]) => {
    const broker = await fakeBroker();
    await broker.gatewayIs(true, RUN);
    const proxy = await startProxy({ port: Number(new URL(broker.url).port) });
    onTestFinished(() => proxy.close());
    const session = await box(`mqtt://127.0.0.1:${proxy.port}`, change).opening;
    return { broker, proxy, session };
  };

  it('TOP-4 gives up a broker that answers pings but acknowledges no message for 10 s', async () => {
    const clock = new VirtualClock();
    const { proxy, session } = await overProxy({ clock });
    await session.send(shown());
    proxy.stall(['up']);
    const unheard = expect(session.send(shown())).rejects.toThrow(/did not acknowledge a message within 10000 ms/);
    await clock.advance(10_000);
    await unheard;
    proxy.cut();
  });

  it('names what is wrong with its options instead of throwing', () => {
    for (const url of ['', 'not a url', 'http://broker.example', 'mqtt://name@broker.example']) {
      const issues = mqttTransport.options.safeParse({ url }).error?.issues;
      expect(issues, url).toMatchObject([{ path: ['url'], message: expect.stringContaining('address') }]);
    }
  });

  it('stops dialling when told to', async () => {
    const broker = await fakeBroker();
    const { opening, abort } = box(broker.url);
    await eventually('the birth', () => broker.presences.length === 1);
    abort.abort(new Error('the box stops'));
    await expect(opening).rejects.toThrow(/the box stops/);
  });
});
