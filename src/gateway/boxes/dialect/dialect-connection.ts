import type { MqttClient } from 'mqtt';
import { withDeadline } from '../../../lib/clock.ts';
import { reasonOf } from '../../../lib/errors.ts';
import type { HostResolver } from '../../../lib/resolver.ts';
import { boxIdTopic, DIALECT_GATEWAY_RIGHTS } from '../../../protocol/dialect.ts';
import { READ_PACKET_BYTES_MAX } from '../../../protocol/packet-limit.ts';
import type { World } from '../../common/world.ts';
import { type BrokerAddress, CLOSED, connectToBroker } from '../broker-client.ts';
import type { ChannelConnection } from '../mqtt-channel.ts';
import type { Outcome } from './notice-sender.ts';

/** The reason code of MQTT 5 for a message whose topic has no subscriber. */
const NO_MATCHING_SUBSCRIBERS = 16;
const ACKNOWLEDGE_TIMEOUT_MS = 15_000;

/** Receives the events of a connection. */
export interface DialectHearer {
  /** Returns whether a client listens on a topic of the embedded broker. Undefined for an external broker. */
  isListening: ((topic: string) => boolean) | undefined;
  receive: (topic: string, payload: Buffer) => void;
  lost: (why: string) => void;
}

/**
 * Returns whether the broker may not know MQTT 5: it refuses the version (return code 1 or 132), or ends the connection
 * without a reason.
 */
function mayNotKnowMqtt5(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return error.message === CLOSED || ('code' in error && (error.code === 1 || error.code === 132));
}

/** Holds one connection of the gateway to the broker for boxes and hosts of the public dialect. */
export class DialectConnection implements ChannelConnection {
  readonly closed: Promise<void>;
  readonly #client: MqttClient;
  readonly #world: World;
  readonly #hearer: DialectHearer;
  /**
   * The ids of messages whose acknowledgement reports that nobody listens. The MQTT library does not report this to the
   * sender.
   */
  readonly #unheard = new Set<number>();
  /** False if the acknowledgements of this broker do not report whether anybody listens. */
  #tells = true;

  private constructor(client: MqttClient, world: World, hearer: DialectHearer) {
    this.#client = client;
    this.#world = world;
    this.#hearer = hearer;
    this.closed = new Promise((resolve) => client.once('close', () => resolve()));
    client.on('packetreceive', (packet) => {
      if (packet.cmd !== 'puback' || packet.reasonCode !== NO_MATCHING_SUBSCRIBERS) return;
      if (packet.messageId !== undefined) this.#unheard.add(packet.messageId);
    });
  }

  /** Connects and subscribes to the requests of boxes and hosts (PROTOCOL.md, clause VQD-5). */
  static async open(
    address: BrokerAddress,
    names: HostResolver,
    world: World,
    hearer: DialectHearer,
  ): Promise<DialectConnection> {
    const isForeign = hearer.isListening === undefined;
    const clientId = `gateway-vietqr-${world.random.uuid().slice(0, 8)}`;
    // A broker of MQTT 5 drops a packet that is too long. An older broker's packet would end the connection.
    const limits = { properties: { maximumPacketSize: READ_PACKET_BYTES_MAX } };
    const connect = (protocolVersion: 4 | 5) =>
      connectToBroker(address, names, { clientId, protocolVersion, ...(protocolVersion === 5 && limits) }, world.log);
    // Only MQTT 5 reports to a publisher whether anybody listens. The gateway sees it itself at the embedded broker.
    const client = await connect(isForeign ? 5 : 4).catch((error: unknown) => {
      if (isForeign && mayNotKnowMqtt5(error)) return connect(4);
      throw error;
    });
    const connection = new DialectConnection(client, world, hearer);
    try {
      // The broker repeats a retained request at each subscription, so it is ignored.
      client.on('message', (topic, payload, { retain }) => {
        if (!retain) hearer.receive(topic, payload);
      });
      await client.subscribeAsync([...DIALECT_GATEWAY_RIGHTS.read], { qos: 1 });
      if (isForeign) await connection.#probe();
    } catch (error) {
      client.end(true);
      throw error;
    }
    return connection;
  }

  get isConnected(): boolean {
    return this.#client.connected;
  }

  /** Returns whether `publish` can report that nobody listens. */
  get tellsListeners(): boolean {
    return this.#tells;
  }

  disconnectBoxes(why: string): void {
    this.#hearer.lost(why);
  }

  /** Publishes with QoS 1, never retained. Never throws. */
  async publish(topic: string, payload: string): Promise<Outcome> {
    const { isListening } = this.#hearer;
    const { clock, log } = this.#world;
    if (isListening?.(topic) === false) return 'nobody';
    const sent = this.#client.publishAsync(topic, payload, { qos: 1 });
    const id = this.#client.getLastMessageId();
    const published = sent.then(
      (): Outcome => (this.#unheard.delete(id) ? 'nobody' : 'taken'),
      (error: unknown): Outcome => {
        log.warn('message-not-sent', { topic, reason: reasonOf(error) });
        return 'unknown';
      },
    );
    const outcome = await withDeadline(clock, ACKNOWLEDGE_TIMEOUT_MS, published);
    // A broker that acknowledges nothing is disconnected, even if it answers pings.
    if (outcome === undefined) this.#client.end(true);
    return outcome ?? 'unknown';
  }

  async close(): Promise<void> {
    this.#client.removeAllListeners('message');
    this.#client.end(true);
    await this.closed;
  }

  /** Finds out on a topic of no box whether the broker reports that nobody listens. */
  async #probe(): Promise<void> {
    const { random, log } = this.#world;
    if ((await this.publish(boxIdTopic(random.uuid()), '')) === 'nobody') return;
    this.#tells = false;
    const reason =
      'this broker does not tell whether a box is subscribed (MQTT 5, reason code 16), or somebody else reads all ' +
      'topics: a box counts as connected from its enrolment on, even when it has gone';
    log.warn('listeners-not-reported', { reason });
  }
}
