import { connectAsync, type IClientOptions, type MqttClient } from 'mqtt';
import { onTestFinished } from 'vitest';
import type { FakeBoxIdentity } from '../support/fake-box.ts';

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
  const login = { username: terminalCode, password: secret, reconnectPeriod: 0 };
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
