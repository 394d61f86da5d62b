import { describe, expect, it, onTestFinished } from 'vitest';
import { mqttTransport } from '../../../src/device/agent/transports/mqtt.ts';
import { encode } from '../../../src/protocol/codec.ts';
import { lightMqtt } from '../../support/light-transport.ts';
import type { Direction } from '../../support/proxy.ts';
import { drain, overProxy, shown, withdraw } from './peers.ts';

/** A busy machine may fire timers and deliver bytes this late. */
const SLOW_MACHINE_MS = 5_000;

describe.each([
  ['the library', mqttTransport],
  ['the light client', lightMqtt],
])('the MQTT transport over %s', (_client, transport) => {
  it('TOP-4 finds a half-open connection within 1.5 keepalives, also while messages flow one way', async () => {
    const keepaliveSeconds = 5;
    const cases: [string, readonly Direction[]][] = [
      ['both ways', ['up', 'down']],
      ['from the broker', ['down']],
      ['to the broker', ['up']],
    ];
    const found = cases.map(async ([name, ways]) => {
      const { broker, proxy, session } = await overProxy(transport, { keepaliveSeconds });
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
