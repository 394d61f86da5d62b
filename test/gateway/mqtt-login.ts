import { connectAsync, type IClientOptions, type MqttClient } from 'mqtt';
import { onTestFinished } from 'vitest';
import { loginOf } from '../../src/protocol/keys.ts';
import { boxTopic, GATEWAY_PRESENCE_TOPIC } from '../../src/protocol/topics.ts';
import { FakeBox, type FakeBoxIdentity } from '../support/fake-box.ts';
import { eventually } from '../support/net.ts';

/** What came to a login, as it came. */
export interface Received {
  topic: string;
  payload: string;
  qos: number;
  retain: boolean;
}

/** A bare login at a broker, without the manners of a box. */
export interface Login {
  client: MqttClient;
  received: Received[];
  ended: Promise<void>;
  /** Whether the broker refused this subscription. */
  refused(filter: string): Promise<boolean>;
}

/** Logs in with a box's credential; rejects when the broker does not let it. Ended when the test ends. */
export async function loginAs(
  { mqttUrl }: { mqttUrl: string | undefined },
  { terminalCode, secret }: Pick<FakeBoxIdentity, 'terminalCode' | 'secret'>,
  options: IClientOptions = {},
): Promise<Login> {
  const login = { username: terminalCode, password: secret === '' ? '' : loginOf(secret), reconnectPeriod: 0 };
  const client = await connectAsync(mqttUrl ?? '', { ...login, ...options }, false);
  onTestFinished(() => client.endAsync(true));
  client.on('error', () => undefined);
  const received: Received[] = [];
  client.on('message', (topic, payload, { qos, retain }) => {
    received.push({ topic, payload: payload.toString('utf8'), qos, retain });
  });
  const ended = new Promise<void>((resolve) => client.once('close', () => resolve()));
  const refused = (filter: string) =>
    client.subscribeAsync(filter, { qos: 1 }).then(
      (grants) => grants.every((it) => it.qos === 128),
      () => true,
    );
  return { client, received, ended, refused };
}

/** Says hello over a bare login, as the box would that it is the login of; the session that begins. */
export async function sayHello({ client, received }: Login, identity: FakeBoxIdentity): Promise<string> {
  const gateway = { origin: '', mqttUrl: undefined };
  const { seal, sessionId } = new FakeBox({ gateway, identity, transport: 'mqtt' });
  await client.subscribeAsync(GATEWAY_PRESENCE_TOPIC, { qos: 1 });
  const birth = await eventually('a present gateway', () => received.find((it) => it.topic === GATEWAY_PRESENCE_TOPIC));
  const { terminalCode, serialNumber } = identity;
  const head = { v: 1, id: crypto.randomUUID(), sentAtMs: 1, type: 'hello', sessionId } as const;
  const names = { terminalCode, serialNumber, agentVersion: '', display: '', shownPushId: null };
  const hello = seal.seal({ ...head, ...names }, JSON.parse(birth.payload).sessionId);
  await client.publishAsync(boxTopic(terminalCode, 'up'), hello, { qos: 1 });
  return sessionId;
}
