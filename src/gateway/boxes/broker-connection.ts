import type { IClientOptions, IPublishPacket, MqttClient } from 'mqtt';
import { withDeadline } from '../../lib/clock.ts';
import { reasonOf } from '../../lib/errors.ts';
import type { HostResolver } from '../../lib/resolver.ts';
import { decodePresence } from '../../protocol/codec.ts';
import { type DownMessage, unheardMaxMs } from '../../protocol/messages.ts';
import { boxTopic, gatewayPresenceTopic, gatewayRights, gatewaysTopic, parseBoxTopic } from '../../protocol/topics.ts';
import type { World } from '../common/world.ts';
import { BROKER_TRANSPORT, type BrokerAddress, connectToBroker } from './broker-client.ts';
import type { BoxConnection, BoxSocket } from './connection.ts';
import { GatewayPresence, presenceOf } from './gateway-presence.ts';
import type { HelloSpread } from './hello-spread.ts';
import type { ChannelConnection } from './mqtt-channel.ts';
import { aliveMsFor } from './welcome.ts';
import type { BoxWire, LaneHub } from './wire.ts';

const GOODBYE_TIMEOUT_MS = 1000;
/**
 * With more unacknowledged messages nothing is sent: a push is withdrawn at its deadline, and durable messages are sent
 * again later.
 */
const UNACKNOWLEDGED_MAX = 10_000;
/** How long the broker may take to send this connection its own acknowledged presence. */
const ECHO_TIMEOUT_MS = 5_000;
/** How often the gateway looks for a connection that has become silent. */
const SILENCE_LOOK_MS = 4_000;
/** After this time a connection that never received a message from a box is replaced: it may be unable to receive. */
const SILENCE_MAX_MS = 300_000;
/** A broker that acknowledges nothing for this time is disconnected, even if it answers pings. */
const ACKNOWLEDGE_TIMEOUT_MS = 15_000;
const BEGIN_TIMEOUT_MS = 15_000;

/** The reason for refusing a received message. */
type Refusal = { code: string; reason: string };
const refuse = (code: string, reason: string): Refusal => ({ code, reason });

/** One lane at the broker: its number, who takes what boxes say there, and how boxes spread their hellos. */
export interface Lane extends Omit<BoxWire, 'hub'> {
  lane: number;
  hub: LaneHub;
  spread: HelloSpread;
}

/** Holds one connection of the gateway to the broker, in one lane. After its end the channel opens a new one. */
export class BrokerConnection implements ChannelConnection {
  /** Settles once the connection has ended. */
  readonly closed: Promise<void>;
  readonly #client: MqttClient;
  readonly #runId: string;
  readonly #world: World;
  readonly #at: Lane;
  readonly #presence: GatewayPresence;
  #heardAtMs: number;
  /** Connections by terminalCode. A box is added with its first message. A door has none. */
  readonly #boxes = new Map<string, BoxConnection>();
  /** Send time of each message that the broker has not acknowledged, oldest first. */
  readonly #unacknowledgedMs = new Map<object, number>();

  private constructor(client: MqttClient, runId: string, world: World, at: Lane) {
    this.#client = client;
    this.#runId = runId;
    this.#world = world;
    this.#at = at;
    this.#presence = new GatewayPresence(client, runId, at.lane, world, at.spread);
    this.#heardAtMs = world.clock.monotonicMs();
    this.closed = new Promise((resolve) => client.once('close', () => resolve()));
  }

  /** Connects, subscribes to every box, and only then publishes the gateway's presence (PROTOCOL.md, clause PRE-2). */
  static async open(address: BrokerAddress, names: HostResolver, world: World, at: Lane): Promise<BrokerConnection> {
    // Even the last will of a door would contradict the gateway of its lane.
    if (isNeedless(at.lane, world)) throw new Error(`lane ${at.lane} has its gateway again`);
    // Each connection has a new run id, because a box says hello again to an unknown run.
    const runId = world.random.uuid();
    const will: IClientOptions['will'] = {
      topic: gatewayPresenceTopic(at.lane),
      payload: Buffer.from(presenceOf(runId, false)),
      qos: 1,
      retain: true,
    };
    const client = await connectToBroker(address, names, { clientId: `gateway-${runId.slice(0, 8)}`, will }, world.log);
    const connection = new BrokerConnection(client, runId, world, at);
    try {
      client.on('message', (topic, payload, packet) => {
        if (topic === connection.#presence.topic) connection.#keepPresent(payload, packet);
        else if (topic === gatewaysTopic(at.lane)) world.place.lanes.said(payload);
        else void connection.#receive(topic, payload, packet);
      });
      await connection.#beginInTime();
    } catch (error) {
      client.end(true);
      throw error;
    }
    if (typeof address.where === 'string') void connection.#watchSilence();
    return connection;
  }

  /**
   * Calls `#begin`. Also throws if the broker does not answer in time or the connection ends, because nothing else
   * would report it.
   */
  async #beginInTime(): Promise<void> {
    const ended = this.closed.then(() => Promise.reject(new Error('it ended the connection')));
    const begun = Promise.race([this.#begin().then(() => true), ended]);
    if (await withDeadline(this.#world.clock, BEGIN_TIMEOUT_MS, begun)) return;
    throw new Error(`it has not acknowledged within ${BEGIN_TIMEOUT_MS} ms what the gateway reads and says`);
  }

  /** Throws if the broker lacks something that gateway and boxes rely on (PROTOCOL.md, clause PRE-5). */
  async #begin(): Promise<void> {
    const { lane } = this.#at;
    const isShared = this.#world.place.sharing !== undefined && !this.#isDoor;
    const topics = [...gatewayRights(lane).read, ...(isShared ? [gatewaysTopic(lane)] : [])];
    const granted = await this.#client.subscribeAsync(topics, { qos: 1 }).catch((error: unknown) => {
      throw new Error(`it does not let the gateway read ${topics.join(', ')}: ${reasonOf(error)}`);
    });
    if (granted.some(({ qos }) => qos !== 1)) throw new Error(`it grants no QoS 1 to who reads ${topics.join(', ')}`);
    await this.#presence.announce(true);
    const echoed = this.#presence.echoed.then(() => true);
    if (await withDeadline(this.#world.clock, ECHO_TIMEOUT_MS, echoed)) return;
    throw new Error(`it acknowledges what the gateway says on ${this.#presence.topic}, and delivers it to nobody`);
  }

  /**
   * Ends a connection that has become silent after messages of boxes. A broker may lose a subscription together with
   * the node that held it, and still answer pings (PROTOCOL.md, clause PRE-5).
   */
  async #watchSilence(): Promise<void> {
    const { clock, log } = this.#world;
    const over = new AbortController();
    void this.closed.then(() => over.abort());
    while (!over.signal.aborted) {
      await clock.sleep(SILENCE_LOOK_MS, over.signal);
      const silentMs = clock.monotonicMs() - this.#heardAtMs;
      const isKnown = this.#boxes.size > 0;
      if (over.signal.aborted || silentMs < (isKnown ? unheardMaxMs(aliveMsFor(this.#boxes.size)) : SILENCE_MAX_MS))
        continue;
      const reason = `no box is heard for ${Math.round(silentMs)} ms`;
      log[isKnown ? 'warn' : 'info']('broker-silent', { lane: this.#at.lane, reason });
      this.#client.end(true);
    }
  }

  get isConnected(): boolean {
    return this.#client.connected;
  }

  /** Returns the codes of the boxes that have spoken on this connection and were not sent away. */
  boxes(): string[] {
    return [...this.#boxes.keys()];
  }

  /** Sends a box to another lane, unless a push is open on it. Settles with whether it goes. */
  async move(terminalCode: string, lane: number): Promise<boolean> {
    const connection = this.#boxes.get(terminalCode);
    if (connection === undefined || !(await this.#at.hub.move(terminalCode, { connection, lane }))) return false;
    // A box that has left is not awaited here any more: its silence says nothing about the broker.
    this.#boxes.delete(terminalCode);
    return true;
  }

  /** Publishes to a topic of no lane with QoS 1, never retained. Rejects with the error of the broker. */
  async publish(topic: string, payload: string): Promise<void> {
    await this.#client.publishAsync(topic, payload, { qos: 1 });
  }

  /** Says something to the gateway of another lane. It may be lost. Returns false without a connection. */
  say(lane: number, sealed: Buffer): boolean {
    if (this.isConnected) this.#client.publish(gatewaysTopic(lane), sealed);
    return this.isConnected;
  }

  /** Publishes the presence of the gateway again if it has changed. Never throws. */
  async renewPresence(): Promise<void> {
    try {
      if (this.isConnected && !isNeedless(this.#at.lane, this.#world)) await this.#presence.renew();
    } catch (error) {
      this.#world.log.warn('gateway-presence-not-sent', { reason: reasonOf(error) });
    }
  }

  disconnectBox(terminalCode: string, why: string): void {
    const connection = this.#boxes.get(terminalCode);
    if (connection !== undefined) this.#at.hub.disconnected(terminalCode, { connection }, why);
  }

  disconnectBoxes(why: string): void {
    for (const terminalCode of this.#boxes.keys()) this.disconnectBox(terminalCode, why);
  }

  /** Publishes that the gateway leaves, then ends the connection. */
  async close(): Promise<void> {
    // The broker also sends the goodbye to this client, which must not contradict it.
    this.#client.removeAllListeners('message');
    if (this.#client.connected) {
      const announced = this.#presence.announce(false).catch(() => undefined);
      await withDeadline(this.#world.clock, GOODBYE_TIMEOUT_MS, announced);
    }
    this.#client.end(true);
    await this.closed;
  }

  get #isDoor(): boolean {
    return this.#at.lane !== this.#world.place.lanes.own;
  }

  #keepPresent(payload: Buffer, packet: IPublishPacket): void {
    if (!isNeedless(this.#at.lane, this.#world)) this.#presence.keep(payload, packet);
  }

  /** Handles any message of a box. On a broker without topic rights it may contain anything. Never throws. */
  async #receive(topic: string, payload: Buffer, { retain }: IPublishPacket): Promise<void> {
    const { log } = this.#world;
    const from = parseBoxTopic(topic);
    try {
      const refusal =
        from === undefined || from.lane !== this.#at.lane
          ? refuse('E46', 'not a topic of a box')
          : from.channel === 'presence'
            ? await this.#takePresence(from.terminalCode, payload, retain)
            : retain
              ? refuse('E46', 'retained by the broker')
              : await this.#takeMessage(from.terminalCode, payload);
      if (refusal !== undefined) log.warn('message-refused', { topic, code: refusal.code, reason: refusal.reason });
    } catch (error) {
      log.error('message-failed', { topic, reason: reasonOf(error) });
    }
  }

  async #takePresence(terminalCode: string, payload: Buffer, retain: boolean): Promise<Refusal | undefined> {
    const presence = decodePresence(payload);
    if (!presence.ok) return refuse('E46', presence.reason);
    if (presence.value.online) {
      const { birth } = this.#presence;
      if (presence.value.asks && !retain && birth !== '') this.#publish(terminalCode, birth, 'presence');
      return undefined;
    }
    if (!(await this.#at.signer.provesGone(terminalCode, presence.value))) {
      return refuse('SIGNATURE_INVALID', 'the sender of the offline presence does not know the secret of the box');
    }
    this.#at.hub.disconnected(terminalCode, presence.value, 'its presence ended');
    return undefined;
  }

  async #takeMessage(terminalCode: string, payload: Buffer): Promise<Refusal | undefined> {
    const { hub, signer, connect } = this.#at;
    this.#heardAtMs = this.#world.clock.monotonicMs();
    const message = await signer.verify(terminalCode, this.#runId, payload);
    if (!message.ok) return message;
    const connection = this.#boxes.get(terminalCode) ?? connect(terminalCode, this.#socketOf(terminalCode));
    if (!this.#isDoor) this.#boxes.set(terminalCode, connection);
    void hub.receive(terminalCode, connection, message.value);
    return undefined;
  }

  #socketOf(terminalCode: string): BoxSocket {
    return {
      transport: BROKER_TRANSPORT,
      problem: () => this.#problem(),
      send: (signed, type) => this.#publish(terminalCode, signed, type),
      // Boxes share the connection to the broker, so it stays open. The message `refused` ends the session of the box.
      end: () => undefined,
    };
  }

  #problem(): string | undefined {
    if (!this.#client.connected) return 'the broker is not connected';
    const [oldestMs] = this.#unacknowledgedMs.values();
    const waitedMs = oldestMs === undefined ? 0 : this.#world.clock.monotonicMs() - oldestMs;
    if (waitedMs > ACKNOWLEDGE_TIMEOUT_MS) {
      this.#client.end(true);
      return `a message is not acknowledged for ${ACKNOWLEDGE_TIMEOUT_MS} ms`;
    }
    if (this.#unacknowledgedMs.size < UNACKNOWLEDGED_MAX) return undefined;
    return `${UNACKNOWLEDGED_MAX} messages are not acknowledged`;
  }

  #publish(terminalCode: string, said: string, type: DownMessage['type'] | 'presence'): void {
    // The presence is dropped, because the box asks again.
    if (type === 'presence' && this.#problem() !== undefined) return;
    const key = {};
    this.#unacknowledgedMs.set(key, this.#world.clock.monotonicMs());
    this.#client.publish(boxTopic(terminalCode, 'down', this.#at.lane), said, { qos: 1 }, (error) => {
      this.#unacknowledgedMs.delete(key);
      if (!error || this.#client.disconnecting || !this.#client.connected) return;
      this.#world.log.warn('message-not-sent', { box: terminalCode, type, reason: reasonOf(error) });
    });
  }
}

/** Returns whether a connection in this lane is a door whose lane has its gateway again, which says itself that it is there. */
function isNeedless(lane: number, { place: { lanes } }: World): boolean {
  return lane !== lanes.own && !lanes.doors().includes(lane);
}
