import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connectAsync, type MqttClient } from 'mqtt';
import { describe, expect, it, onTestFinished } from 'vitest';
import { GATEWAY_LOGIN } from '../../src/device/setup/brokers.ts';
import { loginOf } from '../../src/protocol/keys.ts';
import { boxTopic, GATEWAY_PRESENCE_TOPIC } from '../../src/protocol/topics.ts';
import { startProvisionedNats } from '../support/nats.ts';
import { eventually, freePort } from '../support/net.ts';
import { PROGRAMS, without } from '../support/programs.ts';
import { provisioned } from '../support/provisioned.ts';
import { startProvisionedRabbitmq } from '../support/rabbitmq.ts';

const lacks = [PROGRAMS.rabbitmq, PROGRAMS.nats].map(without);
const [OWN, OTHERS] = ['VVB000001', 'VVB000002'] as const;

/** Logs in over TLS with a certificate and a password; either may be another's. */
async function login(made: Made, certificate: string, username: string, password: string): Promise<MqttClient> {
  const isGateway = certificate === GATEWAY_LOGIN;
  const of = isGateway ? 'gateway/client-' : `boxes/${certificate}/`;
  const file = (name: string) => readFile(join(made.path, name));
  const [ca, cert, key] = [await file('ca.pem'), await file(`${of}cert.pem`), await file(`${of}key.pem`)];
  const url = `mqtts://localhost:${made.at.mqttPort}`;
  // A client id begins with the login (clause TOP-6).
  const options = { protocolVersion: 4, reconnectPeriod: 0, clientId: `${username}-${randomUUID()}` } as const;
  const client = await connectAsync(url, { ...options, username, password, ca, cert, key }, false);
  client.on('error', () => undefined);
  onTestFinished(() => void client.end(true));
  return client;
}

type Made = Awaited<ReturnType<typeof provisioned>>;

const boxPassword = async (made: Made, n: 1 | 2) => loginOf((await made.box(n)).secret);

async function gatewayPassword(made: Made): Promise<string> {
  return /password: (\S+)/.exec(await made.text('gateway/gateway.yaml'))?.[1] ?? '';
}

describe.skipIf(lacks.some(({ missing }) => missing))(`made files${lacks.map(({ note }) => note).join('')}`, () => {
  it.each([
    ['RabbitMQ', startProvisionedRabbitmq],
    ['NATS', startProvisionedNats],
  ])('TLS-5 TOP-3 THR-14 give gateway and boxes their topics at %s, and nobody else', async (_name, startBroker) => {
    const made = await provisioned(await freePort());
    const password = await gatewayPassword(made);
    const asGateway = () => login(made, GATEWAY_LOGIN, GATEWAY_LOGIN, password);
    const isReady = () =>
      asGateway().then(
        () => true,
        () => false,
      );
    const broker = await startBroker(made.path, made.at.mqttPort, isReady);
    onTestFinished(() => broker.close());
    const gateway = await asGateway();
    const told: string[] = [];
    gateway.on('message', (topic, payload) => told.push(`${topic} ${payload}`));
    await gateway.subscribeAsync([boxTopic('+', 'up'), boxTopic('+', 'up', 3)], { qos: 1 });
    const box = await login(made, OWN, OWN, await boxPassword(made, 1));
    const heard: string[] = [];
    box.on('message', (topic, payload) => heard.push(`${topic} ${payload}`));
    await box.subscribeAsync([boxTopic(OWN, 'down'), boxTopic(OWN, 'down', 3), GATEWAY_PRESENCE_TOPIC], { qos: 1 });
    await box.publishAsync(boxTopic(OWN, 'up'), 'a', { qos: 1 });
    await box.publishAsync(boxTopic(OWN, 'up', 3), 'b', { qos: 1 });
    await gateway.publishAsync(boxTopic(OWN, 'down', 3), 'c', { qos: 1 });
    await gateway.publishAsync(GATEWAY_PRESENCE_TOPIC, 'd', { qos: 1, retain: true });
    await eventually('all messages', () => told.length === 2 && heard.length === 2);
    const thief = await login(made, OWN, OWN, await boxPassword(made, 1));
    void thief.publishAsync(boxTopic(OTHERS, 'up'), 'lie', { qos: 1 }).catch(() => undefined);
    const reader = await login(made, OTHERS, OTHERS, await boxPassword(made, 2));
    await expect(reader.subscribeAsync(boxTopic(OWN, 'down'), { qos: 1 })).rejects.toThrow();
    await expect(login(made, OWN, OWN, 'wrong')).rejects.toThrow();
    await expect(login(made, OTHERS, OWN, await boxPassword(made, 2))).rejects.toThrow();
    // After the lie, so that it would have come before.
    const last = await login(made, OTHERS, OTHERS, await boxPassword(made, 2));
    await last.publishAsync(boxTopic(OTHERS, 'up'), 'e', { qos: 1 });
    await eventually('the last message', () => told.length > 2);
    expect(told).toEqual([`${boxTopic(OWN, 'up')} a`, `${boxTopic(OWN, 'up', 3)} b`, `${boxTopic(OTHERS, 'up')} e`]);
    expect(heard).toEqual([`${boxTopic(OWN, 'down', 3)} c`, `${GATEWAY_PRESENCE_TOPIC} d`]);
  });
});
