import type { Socket } from 'node:net';
import { reasonOf } from '../../../lib/errors.ts';
import type { HostResolver } from '../../../lib/resolver.ts';
import { equalSecrets } from '../../../protocol/checksum.ts';
import {
  boxIdOf,
  boxIdTopic,
  decodeEnrolRequest,
  ENROL_TOPIC,
  type EnrolAnswer,
  enrolAnswerTopics,
  macCheckSum,
  macDigits,
} from '../../../protocol/dialect.ts';
import type { Stored } from '../../common/stored.ts';
import type { World } from '../../common/world.ts';
import type { GatewayConfig } from '../../config/config.ts';
import type { PartnerCalls } from '../../partner/partner-calls.ts';
import type { NewPayment } from '../../store/schema/tables.ts';
import { BoxQueues } from '../box-queues.ts';
import type { BrokerAddress } from '../broker-client.ts';
import type { Mqtt as MqttSide } from '../mqtt.ts';
import { type MqttChannel, openMqttChannel } from '../mqtt-channel.ts';
import type { BoxHub } from '../wire.ts';
import { DialectBox, type DialectWire } from './dialect-box.ts';
import { DialectConnection } from './dialect-connection.ts';
import { type HostPublish, Hosts } from './hosts.ts';
import { Listeners } from './listeners.ts';
import type { Outcome } from './notice-sender.ts';

/** How many boxes of the dialect there may be. The gateway itself remembers what each of them shows. */
const BOXES_MAX = 10_000;

/** The hub, and the edge between it and the boxes. */
export interface DialectEdges {
  hub: BoxHub;
  wrapConnect: DialectWire['wrapConnect'];
  /** Called when a box has connected to the embedded broker. */
  boxConnected(terminalCode: string, socket: Socket): void;
}

type VietqrBoxes = NonNullable<GatewayConfig['vietqrBoxes']>;

/** The work that one gateway of a database does for all: what boxes of the dialect show is in its memory. */
const WORK = 'dialect';
/** The wait before a gateway asks again whether it may take over that work. */
const TAKE_OVER_MS = 1_000;

/** Publishes for a gateway that does not serve the boxes. */
type Mqtt = Pick<MqttSide, 'address' | 'publish'>;

/**
 * Serves the boxes that speak the public dialect, over one connection to the broker (PROTOCOL.md, clause VQD). Of the
 * gateways of a database one serves them all, and another takes over when it ends.
 */
export class Dialect {
  /** Records who listens at the embedded broker. Undefined at an external broker. */
  readonly listeners: Listeners | undefined;
  readonly #world: World;
  readonly #stored: Stored;
  readonly #edges: DialectEdges;
  readonly #settings: VietqrBoxes;
  readonly #queues: BoxQueues;
  readonly #byTopic = new Map<string, DialectBox>();
  readonly #byMac = new Map<string, DialectBox>();
  readonly #over = new AbortController();
  #isServing = false;
  #channel: MqttChannel<DialectConnection> | undefined;
  #connection: DialectConnection | undefined;
  #hosts: Hosts | undefined;
  #takingOver: Promise<void> = Promise.resolve();

  private constructor(settings: VietqrBoxes, world: World, stored: Stored, edges: DialectEdges) {
    this.#world = world;
    this.#stored = stored;
    this.#edges = edges;
    this.#settings = settings;
    this.#queues = new BoxQueues(world.log);
    const { login } = settings;
    const isEmbedded = world.config.mqtt?.embedded !== undefined;
    this.listeners = isEmbedded ? new Listeners(login.username, (...change) => this.#changed(...change)) : undefined;
  }

  static async create(settings: VietqrBoxes, world: World, stored: Stored, edges: DialectEdges): Promise<Dialect> {
    const dialect = new Dialect(settings, world, stored, edges);
    if (await world.place.lease(WORK)) await dialect.#takeBoxes();
    return dialect;
  }

  /** Begins to serve the boxes of the registry. Earlier payments may have been announced by another gateway. */
  async #takeBoxes(): Promise<void> {
    const { hub, wrapConnect } = this.#edges;
    const { paidMessage, boxIdSalt } = this.#settings;
    const wire: DialectWire = {
      ...{ hub, wrapConnect, paidMessage, queues: this.#queues, startedMs: this.#world.clock.wallMs() },
      publish: (topic, payload) => this.publish(topic, payload),
      tellsListeners: () => this.#connection?.tellsListeners === true,
    };
    for (const box of await this.#stored.directory.dialectBoxes(BOXES_MAX)) {
      const topic = boxIdTopic(boxIdOf(box.terminalCode, boxIdSalt));
      const made = new DialectBox(box, topic, this.#world, this.#stored, wire);
      this.#byTopic.set(topic, made);
      this.#byMac.set(macDigits(box.macAddr ?? ''), made);
    }
    this.#isServing = true;
  }

  /**
   * Connects to the broker, greets the boxes that listen there, and answers hosts. `origin` is the address of the
   * gateway. While another gateway serves the boxes, this one only waits. Throws as `openMqttChannel` does.
   */
  async open(mqtt: Mqtt, service: PartnerCalls, origin: () => string): Promise<void> {
    const publish: HostPublish = (topic, payload) =>
      this.#isServing ? this.publish(topic, payload) : mqtt.publish(topic, payload);
    const hosts = new Hosts(this.#world, this.#stored, service, origin, publish);
    this.#hosts = hosts;
    if (this.#isServing) await this.#connect(mqtt.address, hosts);
    else this.#takingOver = this.#takeOver(mqtt.address, hosts);
  }

  /** Takes the boxes over once no other gateway serves them. */
  async #takeOver(address: BrokerAddress, hosts: Hosts): Promise<void> {
    const { clock, log, place } = this.#world;
    const { signal } = this.#over;
    while (!this.#isServing) {
      await clock.sleep(TAKE_OVER_MS, signal);
      if (signal.aborted) return;
      try {
        if (await place.lease(WORK)) await this.#takeBoxes();
      } catch (error) {
        log.warn('dialect-not-taken-over', { reason: reasonOf(error) });
      }
      if (signal.aborted) return;
    }
    log.info('dialect-taken-over', { boxes: this.#byTopic.size });
    await this.#connect(address, hosts);
  }

  async #connect(address: BrokerAddress, hosts: Hosts): Promise<void> {
    const { listeners } = this;
    const hearer = {
      isListening: listeners && ((topic: string) => listeners.isListening(topic)),
      receive: (topic: string, payload: Buffer) =>
        topic === ENROL_TOPIC ? this.#enrol(payload) : hosts.receive(topic, payload),
      lost: (why: string) => {
        for (const box of this.#byTopic.values()) box.lose(why);
      },
    };
    const open = async (names: HostResolver) => {
      const connection = await DialectConnection.open(address, names, this.#world, hearer);
      this.#connection = connection;
      if (connection.tellsListeners) for (const box of this.#byTopic.values()) void box.greet();
      return connection;
    };
    const { clock, log, place } = this.#world;
    // A gateway of several starts while the broker is away, because boxes over HTTP need none.
    this.#channel = await openMqttChannel(address, open, { clock, log, mayBeAway: place.sharing !== undefined });
  }

  /** Publishes a payment to hosts once. A failure is only logged, because a host acts on each message. */
  tellHosts(payment: NewPayment): void {
    void this.#hosts?.tellPaid(payment).catch((error: unknown) => {
      this.#world.log.warn('host-notice-failed', { transactionId: payment.id, reason: reasonOf(error) });
    });
  }

  /** Publishes with QoS 1, never retained. Never throws. */
  async publish(topic: string, payload: string): Promise<Outcome> {
    return this.#connection?.isConnected === true ? this.#connection.publish(topic, payload) : 'nobody';
  }

  /** Ends the connection after the work that is under way. */
  async close(): Promise<void> {
    this.#over.abort();
    await this.#takingOver;
    for (const box of this.#byTopic.values()) box.close();
    await this.#queues.idle();
    await this.#channel?.close();
  }

  #changed(topic: string, socket: Socket | undefined): void {
    const box = this.#byTopic.get(topic);
    if (box === undefined) return;
    if (socket === undefined) {
      box.lose('its connection to the broker ended');
      return;
    }
    this.#edges.boxConnected(box.terminalCode, socket);
    void box.greet();
  }

  /** Answers a box of the registry. Any other box gets no answer (PROTOCOL.md, clause VQD-2). */
  #enrol(payload: Buffer): void {
    const { log, trafficLog } = this.#world;
    const asked = decodeEnrolRequest(payload);
    if (!asked.ok) {
      log.warn('enrolment-refused', { reason: asked.reason });
      return;
    }
    const { macAddr, checkSum } = asked.value;
    const box = this.#byMac.get(macDigits(macAddr));
    if (!equalSecrets(checkSum, macCheckSum(macAddr, this.#settings.checkSumSalt))) {
      log.warn('enrolment-refused', { macAddr, reason: 'its checkSum is not the MD5 of macAddr and checkSumSalt' });
    } else if (box === undefined) {
      log.warn('enrolment-refused', {
        macAddr,
        reason: 'no box in the configuration has dialect: vietqr and this macAddr',
      });
    } else {
      const { terminalCode } = box;
      trafficLog.message(terminalCode, 'gateway', { type: 'enrol', macAddr });
      const boxId = boxIdOf(terminalCode, this.#settings.boxIdSalt);
      const answer: EnrolAnswer = { qrCertificate: `paybox:${terminalCode}`, boxId };
      for (const to of enrolAnswerTopics(macAddr)) void this.publish(to, JSON.stringify(answer));
      void box.meet();
    }
  }
}
