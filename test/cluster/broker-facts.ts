import { setTimeout as delay } from 'node:timers/promises';
import { connectAsync, type IClientOptions, type MqttClient } from 'mqtt';
import { GATEWAY_LOGIN } from '../../src/device/setup/brokers.ts';
import { boxTopic, GATEWAY_PRESENCE_TOPIC } from '../../src/protocol/topics.ts';
import type { BrokerCluster } from '../support/broker-node.ts';
import { eventually } from '../support/net.ts';

const [BOX, OTHER] = ['VVB000001', 'VVB000002'] as const;
/** Logins of the gateway and of two boxes. */
export const FACT_LOGINS: Readonly<Record<string, string>> = {
  [GATEWAY_LOGIN]: 'gateway',
  [BOX]: 'one',
  [OTHER]: 'two',
};
/** After this time nothing more comes of what a broker was told. */
const NOTHING_MS = 1_500;
const LOGINS_MAX = 5;
/** For a broker to be whole again after one of its nodes has died. */
const WHOLE_MS = 60_000;
/** A third of them, on average, are kept at each node where a broker shares them out. */
const SUBSCRIPTIONS = 24;

/** Looks how a broker behaves: one cell of the table of brokers (src/gateway/README.md) for each name. */
export class BrokerFacts {
  readonly #broker: BrokerCluster;
  readonly #clients: MqttClient[] = [];
  #names = 0;

  constructor(broker: BrokerCluster) {
    this.#broker = broker;
  }

  close(): void {
    for (const client of this.#clients) client.end(true);
  }

  async look(): Promise<Record<string, string>> {
    const looks: Record<string, Promise<string>> = {
      'MQTT 5': this.#mqtt5(),
      'retained presence at another node': this.#retained(),
      'last will of a connection that is cut': this.#will(),
      'a topic without rights, written': this.#refusedPublish(),
      'a topic without rights, read': this.#refusedSubscription(),
      'a client id used again at another node': this.#takeover(),
      'QoS 2': this.#qos2(),
    };
    const found = await Promise.all(Object.entries(looks).map(async ([name, cell]) => [name, await cell]));
    return { ...Object.fromEntries(found), ...(this.#broker.nodes.length > 1 ? await this.#afterNode() : {}) };
  }

  /** Logs in at a node; what it is told is kept. */
  async #login(node: number, user: string, more: IClientOptions = {}): Promise<MqttClient & { told: string[] }> {
    this.#names += 1;
    const client = await connectAsync(
      `mqtt://127.0.0.1:${this.#broker.nodes[node % this.#broker.nodes.length]?.port}`,
      {
        ...{ protocolVersion: 4, clean: true, reconnectPeriod: 0, username: user, password: FACT_LOGINS[user] ?? '' },
        clientId: `${user}-fact${this.#names}`,
        ...more,
      },
      false,
    );
    this.#clients.push(client);
    const told: string[] = [];
    client.on('error', () => undefined);
    client.on('message', (_topic, payload, { retain }) => told.push(`${payload}${retain ? ', retained' : ''}`));
    return Object.assign(client, { told });
  }

  async #mqtt5(): Promise<string> {
    const client = await this.#login(0, BOX, { protocolVersion: 5 }).catch(() => undefined);
    return client === undefined ? 'no' : 'yes';
  }

  async #retained(): Promise<string> {
    const gateway = await this.#login(0, GATEWAY_LOGIN);
    await gateway.publishAsync(GATEWAY_PRESENCE_TOPIC, 'here', { qos: 1, retain: true });
    await delay(NOTHING_MS / 3);
    const box = await this.#login(1, BOX);
    await box.subscribeAsync(GATEWAY_PRESENCE_TOPIC, { qos: 1 });
    await delay(NOTHING_MS);
    return box.told.includes('here, retained') ? 'told' : 'not told';
  }

  async #will(): Promise<string> {
    const gateway = await this.#login(0, GATEWAY_LOGIN);
    await gateway.subscribeAsync(boxTopic('+', 'presence'), { qos: 1 });
    const topic = boxTopic(BOX, 'presence');
    const box = await this.#login(1, BOX, { will: { topic, payload: Buffer.from('gone'), qos: 1, retain: true } });
    box.stream.destroy();
    await delay(NOTHING_MS);
    return gateway.told.includes('gone') ? 'told' : 'not told';
  }

  async #refusedPublish(): Promise<string> {
    const gateway = await this.#login(0, GATEWAY_LOGIN);
    await gateway.subscribeAsync([boxTopic('+', 'up'), GATEWAY_PRESENCE_TOPIC], { qos: 1 });
    const box = await this.#login(1, BOX);
    let isAcknowledged = false;
    const publish = (topic: string) =>
      box.publishAsync(topic, 'foreign', { qos: 1, retain: true }).then(
        () => {
          isAcknowledged = true;
        },
        () => undefined,
      );
    void publish(boxTopic(OTHER, 'up'));
    void publish(GATEWAY_PRESENCE_TOPIC);
    await delay(NOTHING_MS);
    if (gateway.told.includes('foreign')) return 'goes through';
    if (!box.connected) return 'ends the connection';
    return isAcknowledged ? 'acknowledged, dropped' : 'dropped';
  }

  async #refusedSubscription(): Promise<string> {
    const found = new Set<string>();
    for (const filter of [boxTopic(OTHER, 'down'), boxTopic('+', 'down'), '#']) {
      const box = await this.#login(1, BOX);
      const granted = await box.subscribeAsync(filter, { qos: 1 }).then(
        () => true,
        () => false,
      );
      await delay(NOTHING_MS / 5);
      const gateway = await this.#login(0, GATEWAY_LOGIN);
      await gateway.publishAsync(boxTopic(OTHER, 'down'), 'secret', { qos: 1 });
      await delay(NOTHING_MS / 3);
      const how = granted ? 'granted, nothing comes' : 'refused';
      found.add(box.told.includes('secret') ? 'goes through' : box.connected ? how : 'ends the connection');
    }
    return [...found].toSorted().join('; ');
  }

  async #takeover(): Promise<string> {
    const clientId = `${BOX}-same`;
    const first = await this.#login(0, BOX, { clientId });
    const second = await this.#login(1, BOX, { clientId });
    await delay(NOTHING_MS);
    const own = !first.connected && second.connected ? 'ends the older one' : 'ends none';
    // Some refuse for a while a client id that has just changed hands.
    for (let attempt = 0; second.connected && attempt < LOGINS_MAX; attempt += 1) {
      const stranger = await this.#login(2, OTHER, { clientId }).catch(() => undefined);
      await delay(NOTHING_MS);
      stranger?.end(true);
    }
    const others = second.connected ? 'another login’s not' : 'by another login too';
    return `${own}, ${others}`;
  }

  async #qos2(): Promise<string> {
    const box = await this.#login(1, BOX);
    void box.publishAsync(boxTopic(BOX, 'up'), 'twice', { qos: 2 }).catch(() => undefined);
    await delay(NOTHING_MS);
    return box.connected ? 'taken' : 'ends the connection';
  }

  /** Kills a node with a box that has a last will, and looks whom the others have lost. */
  async #afterNode(): Promise<Record<string, string>> {
    const nodes = this.#broker.nodes;
    const watch = await this.#login(0, GATEWAY_LOGIN);
    await watch.subscribeAsync(boxTopic('+', 'presence'), { qos: 1 });
    const topic = boxTopic(OTHER, 'presence');
    await this.#login(2, OTHER, { will: { topic, payload: Buffer.from('lost'), qos: 1, retain: true } });
    const readers = await Promise.all(
      Array.from({ length: SUBSCRIPTIONS }, async (_, i) => {
        const box = await this.#login(i % 2, BOX);
        await box.subscribeAsync(boxTopic(BOX, 'down'), { qos: 1 });
        return box;
      }),
    );
    await nodes[2]?.signal('SIGKILL');
    await eventually('a node that takes a gateway', () => this.#serves(0), WHOLE_MS);
    const gateway = await this.#login(1, GATEWAY_LOGIN);
    await gateway.publishAsync(boxTopic(BOX, 'down'), 'after', { qos: 1 });
    await delay(NOTHING_MS);
    const alive = readers.filter((it) => it.connected);
    const deaf = alive.filter((it) => !it.told.includes('after')).length;
    await nodes[2]?.start();
    return {
      'last will of a client at a node that dies': watch.told.includes('lost') ? 'told' : 'not told',
      'connections at the other nodes': alive.length === SUBSCRIPTIONS ? 'stay' : 'some end',
      'subscriptions there': deaf === 0 ? 'stay' : 'some go deaf',
    };
  }

  /** Whether a gateway can log in and hear itself. */
  async #serves(node: number): Promise<boolean> {
    const client = await this.#login(node, GATEWAY_LOGIN, { connectTimeout: 5_000 }).catch(() => undefined);
    if (client === undefined) return false;
    try {
      client.subscribe(GATEWAY_PRESENCE_TOPIC, { qos: 1 }, () => undefined);
      client.publish(GATEWAY_PRESENCE_TOPIC, 'here', { qos: 1 }, () => undefined);
      await delay(NOTHING_MS);
      return client.told.includes('here');
    } finally {
      client.end(true);
    }
  }
}
