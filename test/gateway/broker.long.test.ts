import { MqttClient } from 'mqtt';
import { describe, expect, it, onTestFinished } from 'vitest';
import { boxTopic } from '../../src/protocol/topics.ts';
import { keptBytes } from '../support/memory.ts';
import { eventually } from '../support/net.ts';
import { bareBroker } from './bare-broker.ts';
import { cableTo, others, own } from './broker-peers.ts';
import { BOX1, BOX2 } from './harness.ts';
import { loginAs } from './mqtt-login.ts';

describe('the embedded broker', () => {
  it('TOP-5 the embedded broker cuts off a box that reads nothing: it costs little memory, and no other box waits for it', async () => {
    const { broker, lines } = await bareBroker();
    const { proxy, mqttUrl } = await cableTo(broker.url);
    const deaf = await loginAs({ mqttUrl }, BOX1, { keepalive: 600 });
    const other = await loginAs({ mqttUrl: broker.url }, BOX2);
    await deaf.client.subscribeAsync(boxTopic(own, 'down'), { qos: 1 });
    await other.client.subscribeAsync(boxTopic(others, 'down'), { qos: 1 });
    const gateway = new MqttClient(() => broker.connect(), { ...broker.login, reconnectPeriod: 0 });
    onTestFinished(() => gateway.endAsync(true));
    proxy.stall(['down']);
    const payload = 'x'.repeat(500);
    const beforeBytes = keptBytes();
    for (let sent = 0; sent < 100_000; sent += 200) {
      await Promise.all(
        Array.from({ length: 200 }, () => gateway.publishAsync(boxTopic(own, 'down'), payload, { qos: 1 })),
      );
    }
    await gateway.publishAsync(boxTopic(others, 'down'), 'told', { qos: 1 });
    await eventually('the other box to be told', () => other.received.length === 1);
    expect(JSON.stringify(lines)).toContain('more than 1048576 bytes are unread');
    expect(keptBytes() - beforeBytes).toBeLessThan(10_000_000);
  });
});
