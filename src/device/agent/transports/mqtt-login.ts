import type { IClientOptions } from 'mqtt';
import { z } from 'zod';
import { withDeadline } from '../../../lib/clock.ts';
import { MissingPeerError } from '../../../lib/errors.ts';
import { decodePresence } from '../../../protocol/codec.ts';
import { loginOf } from '../../../protocol/keys.ts';
import { BROKER_SCHEMES } from '../../../protocol/packet-limit.ts';
import { boxTopic, GATEWAY_PRESENCE_TOPIC } from '../../../protocol/topics.ts';
import type { LoginIo, TransportIo } from '../contract.ts';
import { brokerOptions, clientOptions, withClient } from './broker.ts';
import { checkTls } from './tls.ts';

export const mqttOptions = z
  .strictObject({
    username: z.string().min(1).max(200).optional().describe('login name; box.terminalCode if left out'),
    ...brokerOptions('username and box.secret'),
  })
  .superRefine(checkTls(BROKER_SCHEMES));

export type MqttOptions = z.infer<typeof mqttOptions>;

/** A broker sends retained messages right after it has granted a subscription. */
const PRESENCE_TIMEOUT_MS = 2_000;
export const NO_GATEWAY_FIX = 'start the gateway, or correct the broker address of one of the two';

/** Returns the options of a client that logs in as the box. */
export function loginOptions(options: MqttOptions, { terminalCode, secret }: TransportIo['identity']): IClientOptions {
  return clientOptions(options, { username: options.username ?? terminalCode, password: loginOf(secret) });
}

/**
 * Logs in as the box: subscribes to its topics under another client id, and publishes nothing. Throws when the login is
 * refused, or the broker does not say that the gateway is present.
 */
export async function checkLogin(options: MqttOptions, { clock, identity, sessionId }: LoginIo, signal: AbortSignal) {
  const { terminalCode } = identity;
  const clientId = `${terminalCode}-${sessionId.slice(0, 8)}`;
  return withClient(options, { ...loginOptions(options, identity), clientId }, async (client) => {
    const presence = new Promise<boolean>((resolve) => {
      client.on('message', (topic, payload) => {
        const decoded = topic === GATEWAY_PRESENCE_TOPIC ? decodePresence(payload) : undefined;
        if (decoded?.ok) resolve(decoded.value.online);
      });
    });
    const topics = [GATEWAY_PRESENCE_TOPIC, boxTopic(terminalCode, 'down')];
    const grants = await client.subscribeAsync(topics, { qos: 1 });
    signal.throwIfAborted();
    if (grants.some(({ qos }) => qos > 2)) {
      throw new Error(`the broker accepts the login, but does not let ${terminalCode} read ${topics.join(', ')}`);
    }
    if (await withDeadline(clock, PRESENCE_TIMEOUT_MS, presence))
      return 'the broker accepts it, and the gateway is present';
    const what = 'the broker accepts the login, but does not say that the gateway is present';
    throw new MissingPeerError(what, `${NO_GATEWAY_FIX}; a broker that retains nothing, as RabbitMQ, never says so`);
  });
}
