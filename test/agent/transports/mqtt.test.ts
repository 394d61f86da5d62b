import { createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { mqttTransport } from '../../../src/device/agent/transports/mqtt.ts';
import { VirtualClock } from '../../../src/lib/virtual-clock.ts';
import { encode } from '../../../src/protocol/codec.ts';
import { fakeBroker, IDENTITY } from '../../support/fake-gateway.ts';
import { lightMqtt } from '../../support/light-transport.ts';
import { eventually } from '../../support/net.ts';
import { boxOver, drain, OTHER_RUN, overProxy, RUN, shown, withdraw } from './peers.ts';

/** As PROTOCOL.md, clause PRE-1, writes it. */
const goneProof = (sessionId: string) =>
  createHmac('sha256', IDENTITY.secret)
    .update(`paybox/v1 gone\n${IDENTITY.terminalCode}\n${sessionId}`)
    .digest('base64url');

describe.each([
  ['the library', mqttTransport],
  ['the light client', lightMqtt],
])('the MQTT transport over %s', (_client, transport) => {
  const box = (url: string, change?: Parameters<typeof boxOver>[2]) => boxOver(transport, url, change);

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
    await (await opening).close();
    expect(broker.presences.map(({ payload, retain, qos }) => ({ ...JSON.parse(payload), retain, qos }))).toEqual([
      { v: 1, online: true, sessionId, retain: true, qos: 1 },
      { v: 1, online: false, sessionId, proof: goneProof(sessionId), retain: true, qos: 1 },
    ]);
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

  it('PRE-2 reports that the gateway is not at the broker, and leaves the broker', async () => {
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
    expect(events()).toEqual(['gateway-presence-refused']);
  });

  it('PRE-4 asks for the gateway where the broker retains no presence, and accepts its answer', async () => {
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

  it('PRE-4 asks for no gateway once a message of it has arrived', async () => {
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

  it('TOP-1 refuses a message that the broker retained before the session, but none that is published retained during it', async () => {
    const broker = await fakeBroker();
    await broker.tell(encode(withdraw()), true);
    await broker.gatewayIs(true, RUN);
    const { opening, events } = box(broker.url);
    const session = await opening;
    const told = withdraw();
    await broker.tell(encode(told), true);
    expect((await session.incoming[Symbol.asyncIterator]().next()).value).toEqual(told);
    expect(events()).toEqual(['message-refused']);
  });

  it('waits for no answer to its goodbye from a broker that is leaving', async () => {
    const broker = await fakeBroker();
    await broker.gatewayIs(true, RUN);
    // Its time stands still, so that the goodbye's deadline never comes.
    const session = await box(broker.url, { clock: new VirtualClock() }).opening;
    broker.cut();
    await session.close();
  });

  it('TOP-4 gives up a broker that answers pings but acknowledges no message for 10 s', async () => {
    const clock = new VirtualClock();
    const { proxy, session } = await overProxy(transport, { clock });
    await session.send(shown());
    proxy.stall(['up']);
    const unheard = expect(session.send(shown())).rejects.toThrow(/did not acknowledge a message within 10000 ms/);
    await clock.advance(10_000);
    await unheard;
    proxy.cut();
  });
});
