import { connectAsync, type MqttClient } from 'mqtt';
import { onTestFinished } from 'vitest';
import { GATEWAY_LOGIN } from '../../src/device/setup/brokers.ts';
import { signedConnections } from '../../src/gateway/boxes/connection.ts';
import { Hub } from '../../src/gateway/boxes/hub.ts';
import { MessageSigner } from '../../src/gateway/boxes/message-signer.ts';
import { startMqtt } from '../../src/gateway/boxes/mqtt.ts';
import { placeAlone } from '../../src/gateway/common/place.ts';
import { decodePresence } from '../../src/protocol/codec.ts';
import { loginOf } from '../../src/protocol/keys.ts';
import type { Presence } from '../../src/protocol/messages.ts';
import { gatewayPresenceTopic } from '../../src/protocol/topics.ts';
import { type BrokerName, startBroker } from '../cluster/brokers.ts';
import { keptLog } from '../support/kept-log.ts';
import { ACCOUNT, BOXES, qrFor } from './harness.ts';
import { oneShop } from './service-alone.ts';

export const LANES_PASSWORD = 'password-of-the-gateways';
const SIDE = {
  listeners: undefined,
  boxConnected: () => undefined,
  startBroker: () => Promise.reject(new Error('there is a broker')),
};

/** What gateways of one broker see of their lanes; a test changes it. */
export class LanesOfTest {
  count = 3;
  /** The lanes of the gateways that live; a box has its home in the one that `homes` names, or else in the first. */
  living: number[] = [];
  /** The lanes of gateways that end soon. */
  leaving: number[] = [];
  readonly homes = new Map<string, number>();
  /** The lane of the gateway that answers at a door. */
  readonly doors = new Map<number, number>();
  readonly #watchers = new Set<() => void>();

  homeOf(terminalCode: string): number {
    const home = this.homes.get(terminalCode) ?? 0;
    return this.living.includes(home) ? home : (this.living[0] ?? 0);
  }

  watch(changed: () => void): void {
    this.#watchers.add(changed);
  }

  changed(): void {
    for (const changed of this.#watchers) changed();
  }
}

/** A broker for the gateways and the boxes of the harness, and for these logins; its address. */
export async function brokerOfLanes(name: BrokerName = 'mosquitto', more: Readonly<Record<string, string>> = {}) {
  const boxes = BOXES.map(({ terminalCode, secret }) => [terminalCode, loginOf(secret)] as const);
  const broker = await startBroker(name, { [GATEWAY_LOGIN]: LANES_PASSWORD, ...Object.fromEntries(boxes), ...more });
  onTestFinished(() => broker.close());
  return `mqtt://127.0.0.1:${broker.nodes[0]?.port}`;
}

/** The MQTT side of a gateway in this lane, with a store of its own. */
export async function gatewayInLane(own: number, url: string, lanes: LanesOfTest) {
  const { log, lines } = keptLog();
  const place = {
    ...placeAlone(`run-of-${own}`),
    lanes: {
      own,
      get count() {
        return lanes.count;
      },
      homeOf: (code: string) => lanes.homeOf(code),
      doors: () => [...lanes.doors].filter(([, at]) => at === own).map(([lane]) => lane),
      get isLeaving() {
        return lanes.leaving.includes(own);
      },
      watch: (changed: () => void) => lanes.watch(changed),
      serve: () => undefined,
      said: () => undefined,
    },
  };
  const mqtt = { url, username: GATEWAY_LOGIN, password: LANES_PASSWORD, allowPlain: false };
  const { world, stored } = await oneShop({}, { log, place });
  const hub = new Hub(world, stored);
  const signer = await MessageSigner.open(world, stored, hub);
  const started = await startMqtt(
    mqtt,
    world,
    stored,
    { hub, connect: signedConnections(world, signer), signer },
    SIDE,
  );
  let closing: Promise<void> | undefined;
  const close = () => (closing ??= started.close().then(() => hub.close()));
  onTestFinished(() => close());
  const logged = (event: string) => lines.filter((it) => it.event === event);
  return { hub, stored, logged, close, isConnected: started.isConnected };
}

/** Follows what is said on the presence of a lane's gateway. */
export async function watchPresence(url: string, lane: number) {
  const said: Presence[] = [];
  // RabbitMQ ends the connection of a subscriber whose client id does not begin with its login.
  const clientId = `${GATEWAY_LOGIN}-${crypto.randomUUID()}`;
  const login = { username: GATEWAY_LOGIN, password: LANES_PASSWORD };
  const client: MqttClient = await connectAsync(url, { clientId, ...login });
  onTestFinished(() => client.endAsync(true));
  client.on('message', (_topic, payload) => {
    const decoded = decodePresence(payload);
    if (decoded.ok) said.push(decoded.value);
  });
  await client.subscribeAsync(gatewayPresenceTopic(lane), { qos: 1 });
  return said;
}

/** Pushes an order to a box at this hub. Settles with the answer to the partner. */
export function pushTo(hub: Hub, { terminalCode }: { terminalCode: string }) {
  const [id, orderRef, createdAtMs] = [crypto.randomUUID(), crypto.randomUUID(), Date.now()];
  const [amount, content, qrCode, expiresAtMs] = [50_000, 'DH001', qrFor(), createdAtMs + 300_000];
  const times = { created_at_ms: createdAtMs, expires_at_ms: expiresAtMs };
  return hub.push(
    { id, order_ref: orderRef, terminal_code: terminalCode, ...times },
    {
      ...{ id: orderRef, partner: 'demo', order_id: 'DH001', bank_account: ACCOUNT.bankAccount, bank_code: 'MB' },
      ...{ user_bank_name: '', amount, content, trans_type: 'C', qr_code: qrCode, terminal_code: terminalCode },
      ...{ sub_terminal_code: '', service_code: '', sign: '', url_link: '', created_at_ms: createdAtMs },
    },
    {
      ...{ type: 'show', pushId: id, orderId: 'DH001', amount, content },
      ...{ ...ACCOUNT, qrCode, expiresAtMs, expiresInMs: 300_000 },
    },
  );
}
