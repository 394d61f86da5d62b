import { describe, expect, it, onTestFinished } from 'vitest';
import { mqttTransport } from '../../../src/device/agent/transports/mqtt.ts';
import { encode } from '../../../src/protocol/codec.ts';
import { fakeBroker } from '../../support/fake-gateway.ts';
import { lightMqtt } from '../../support/light-transport.ts';
import { type Direction, startProxy } from '../../support/proxy.ts';
import { boxOver, drain, RUN, shown, withdraw } from './mqtt-peers.ts';

/** A busy machine may fire timers and deliver bytes this late. */
const SLOW_MACHINE_MS = 5_000;

describe.each([
  ['the library', mqttTransport.open],
  ['the light client', lightMqtt.open],
])('the MQTT transport over %s', (_client, open) => {
  const box = (url: string, change?: Parameters<typeof boxOver>[2]) => boxOver(open, url, change);

  /** A box whose way to its broker can be made bad. */
  const overProxy = async (change: Parameters<typeof box>[1]) => {
    const broker = await fakeBroker();
    await broker.gatewayIs(true, RUN);
    const proxy = await startProxy({ port: Number(new URL(broker.url).port) });
    onTestFinished(() => proxy.close());
    const session = await box(`mqtt://127.0.0.1:${proxy.port}`, change).opening;
    return { broker, proxy, session };
  };

  it('TOP-4 finds a half-open connection within 1.5 keepalives, also while messages flow one way', async () => {
    const keepaliveSeconds = 5;
    const cases: [string, readonly Direction[]][] = [
      ['both ways', ['up', 'down']],
      ['from the broker', ['down']],
      ['to the broker', ['up']],
    ];
    const found = cases.map(async ([name, ways]) => {
      const { broker, proxy, session } = await overProxy({ keepaliveSeconds });
      const telling = setInterval(() => void broker.tell(encode(withdraw())), 200);
      const sending = setInterval(() => void session.send(shown()).catch(() => undefined), 200);
      onTestFinished(() => {
        clearInterval(telling);
        clearInterval(sending);
      });
      proxy.stall(ways);
      const stalledMs = performance.now();
      const { reason } = await drain(session.incoming);
      const foundMs = performance.now() - stalledMs;
      expect(reason, name).not.toBe('');
      expect(foundMs, name).toBeLessThan(1.5 * keepaliveSeconds * 1000 + SLOW_MACHINE_MS);
    });
    await Promise.all(found);
  });
});
