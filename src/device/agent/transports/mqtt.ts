import type { IClientOptions } from 'mqtt';
import { type Clock, withDeadline } from '../../../lib/clock.ts';
import { MissingPeerError, PayboxError, reasonOf } from '../../../lib/errors.ts';
import type { Logger } from '../../../lib/log.ts';
import { askingPresence, boxPresence, decodePresence } from '../../../protocol/codec.ts';
import { clientIdOf } from '../../../protocol/keys.ts';
import { PRESENCE_BYTES_MAX, type UpMessage } from '../../../protocol/messages.ts';
import { BROKER_SCHEMES } from '../../../protocol/packet-limit.ts';
import { type BoxChannel, boxTopic, GATEWAY_PRESENCE_TOPIC, gatewayPresenceTopic } from '../../../protocol/topics.ts';
import type { Connection, SessionIo, Transport } from '../contract.ts';
import { begun } from './begin.ts';
import {
  type BrokerClient,
  brokerFailure,
  connected,
  refusedSubscription,
  startClient,
  unreachable,
} from './broker.ts';
import { lost } from './inbound-queue.ts';
import { MessageQueue, notRegistered } from './message-queue.ts';
import { checkLogin, loginOptions, type MqttOptions, mqttOptions, NO_GATEWAY_FIX } from './mqtt-login.ts';

/** The port of the gateway's own broker. */
const GATEWAY_BROKER_PORT = 18_830;

/** A broker that does not acknowledge a message within this time counts as lost, even if it answers pings. */
const ACKNOWLEDGE_TIMEOUT_MS = 10_000;
/** A longer goodbye is cut off; the broker then publishes the last will. */
const GOODBYE_TIMEOUT_MS = 2_000;
/** The box waits this long before each question to a silent gateway (PROTOCOL.md, clause PRE-4). */
const ASK_AFTER_MS = [1_000, 2_000, 4_000];

/** Connects a box over an MQTT broker (PROTOCOL.md, clauses TOP and PRE). */
export const mqttTransport: Transport<MqttOptions> = {
  name: 'mqtt',
  summary: 'a connection to an MQTT 3.1.1 broker that the gateway uses too',
  schemes: BROKER_SCHEMES,
  canEnrol: false,
  options: mqttOptions,
  example: { url: 'mqtt://127.0.0.1:18830', keepaliveSeconds: 15, connectTimeoutMs: 8000 },
  urlOf: ({ origin, brokerPort = GATEWAY_BROKER_PORT }) => `mqtt://${new URL(origin).hostname}:${brokerPort}`,
  checkLogin,
  open: (options, io, signal) => openMqtt(options, io, signal, startClient),
  async openLight(clock) {
    const { LightClients } = await import('./light-client.ts');
    const clients = new LightClients(clock);
    const open = (options: MqttOptions, io: SessionIo, signal: AbortSignal) =>
      openMqtt(options, io, signal, clients.connect);
    return { open, close: () => clients.close() };
  },
};

/** Opens a session on a client that is already connecting. */
async function openMqtt(
  options: MqttOptions,
  io: SessionIo,
  signal: AbortSignal,
  start: (link: MqttOptions, options: IClientOptions) => BrokerClient | Promise<BrokerClient>,
): Promise<Connection> {
  signal.throwIfAborted();
  const connection = new MqttConnection(await start(options, sessionOptions(options, io)), options, io);
  return begun(connection, options, io, signal);
}

/**
 * Uses a separate client id for each session. With one id per box, two agents of one identity would disconnect each
 * other forever, and the gateway could not tell the older one that it is superseded (PROTOCOL.md, clause MSG-8).
 */
function sessionOptions(options: MqttOptions, { identity, sessionId, lane }: SessionIo): IClientOptions {
  return {
    ...loginOptions(options, identity),
    clientId: clientIdOf(identity, sessionId),
    keepalive: options.keepaliveSeconds,
    resubscribe: false,
    will: {
      topic: boxTopic(identity.terminalCode, 'presence', lane),
      payload: Buffer.from(boxPresence(identity, sessionId, false)),
      qos: 1,
      retain: true,
    },
  };
}

class MqttConnection implements Connection {
  readonly incoming: MessageQueue;
  readonly #client: BrokerClient;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #seal: SessionIo['seal'];
  readonly #sessionId: string;
  readonly #identity: SessionIo['identity'];
  readonly #lane: number;
  readonly #noLane: SessionIo['noLane'];
  readonly #presenceTopic: string;
  readonly #broker: string;
  readonly #gatewayIsThere = Promise.withResolvers<void>();
  #gatewayRun: string | undefined;
  /**
   * True once the gateway has sent anything in this session. The broker's own messages about the gateway may be
   * outdated.
   */
  #isHeard = false;
  /** The hello, until the gateway has answered. The box repeats it to another run of the gateway. */
  #hello: UpMessage | undefined;
  /**
   * The time over which boxes spread their hellos, in milliseconds, as the gateway asks for it (PROTOCOL.md, clause
   * PRE-6).
   */
  spreadMs = 0;
  #onBroker = false;
  #goodbye: Promise<void> | undefined;

  constructor(client: BrokerClient, options: MqttOptions, io: SessionIo) {
    this.#client = client;
    this.#clock = io.clock;
    this.#log = io.log;
    this.#seal = io.seal;
    this.#sessionId = io.sessionId;
    this.#identity = io.identity;
    this.#lane = io.lane;
    this.#noLane = io.noLane;
    this.#presenceTopic = gatewayPresenceTopic(io.lane);
    this.#broker = `the broker at ${options.url}`;
    this.incoming = new MessageQueue(io);
    client.on('message', (topic, payload, packet) => this.#receive(topic, payload, packet));
    client.on('error', (error) => this.incoming.fail(this.#failureOf(error)));
    client.on('close', () => this.incoming.fail(lost(`${this.#broker} ended the connection`)));
  }

  /** Settles once box and gateway are both present at the broker (PROTOCOL.md, clauses PRE-1 and PRE-2). */
  async begin(signal: AbortSignal): Promise<void> {
    const giveUp = () => this.incoming.fail(this.#notThere(reasonOf(signal.reason)));
    signal.addEventListener('abort', giveUp, { once: true });
    try {
      await this.incoming.whileOpen(this.#register());
    } finally {
      signal.removeEventListener('abort', giveUp);
    }
  }

  async send(message: UpMessage): Promise<void> {
    if (!this.#isHeard) this.#hello = message;
    const sealed = this.#seal.seal(message, this.#gatewayRun ?? '');
    const acknowledged = this.#publish('up', sealed, false).then(() => true);
    const inTime = withDeadline(this.#clock, ACKNOWLEDGE_TIMEOUT_MS, acknowledged);
    if (await this.incoming.whileOpen(inTime)) return;
    throw lost(`${this.#broker} did not acknowledge a message within ${ACKNOWLEDGE_TIMEOUT_MS} ms`);
  }

  close(): Promise<void> {
    this.#goodbye ??= this.#sayGoodbye();
    return this.#goodbye;
  }

  async #register(): Promise<void> {
    await connected(this.#client);
    this.#onBroker = true;
    await this.#subscribe([...new Set([this.#topic('down'), this.#presenceTopic, GATEWAY_PRESENCE_TOPIC])]);
    await this.#announce(true);
    void this.#askUntilHeard();
    await this.#gatewayIsThere.promise;
  }

  async #subscribe(topics: string[]): Promise<void> {
    const cause = await refusedSubscription(this.#client, topics);
    if (cause === undefined || this.incoming.ended) return;
    throw new PayboxError(
      'NOT_REGISTERED',
      `${this.#broker} does not let ${this.#identity.terminalCode} read ${topics}`,
      {
        severity: 'retryable',
        fix: "give the box's login the topic rights of PROTOCOL.md, clause TOP-3",
        cause,
      },
    );
  }

  /**
   * Asks until the gateway answers. A broker may retain nothing or something outdated, so only the gateway can confirm
   * its presence.
   */
  async #askUntilHeard(): Promise<void> {
    for (const waitMs of ASK_AFTER_MS) {
      await this.#clock.sleep(waitMs, this.incoming.over);
      if (this.#isHeard || this.incoming.ended) return;
      // A connection that fails has ended already, with its own reason.
      await this.#publish('presence', askingPresence(this.#sessionId), true).catch(() => undefined);
    }
  }

  #announce(online: boolean): Promise<void> {
    return this.#publish('presence', boxPresence(this.#identity, this.#sessionId, online), true);
  }

  async #publish(channel: 'up' | 'presence', payload: string, retain: boolean): Promise<void> {
    await this.#client.publishAsync(this.#topic(channel), payload, { qos: 1, retain });
  }

  #topic(channel: BoxChannel): string {
    return boxTopic(this.#identity.terminalCode, channel, this.#lane);
  }

  #receive(topic: string, payload: Buffer, packet: { retain: boolean }): void {
    if (topic === this.#presenceTopic) this.#onGatewayPresence(payload);
    else if (topic === GATEWAY_PRESENCE_TOPIC) this.#onFirstPresence(payload);
    else if (topic !== this.#topic('down')) this.#log.warn('message-topic-mismatched', { topic });
    // Only presence is retained. A retained message from the gateway is outdated.
    else if (packet.retain)
      this.#log.warn('message-refused', { code: 'MESSAGE_ILLEGAL', reason: 'retained by the broker' });
    else if (payload.length > PRESENCE_BYTES_MAX || !this.#onAnswer(payload)) {
      this.#isHeard = true;
      this.#hello = undefined;
      this.incoming.take(payload);
    }
  }

  /**
   * Processes the answer to a question, and repeats the hello if the broker has named another run. Returns false for a
   * message.
   */
  #onAnswer(payload: Buffer): boolean {
    const decoded = decodePresence(payload);
    if (!decoded.ok) return false;
    const { online, sessionId: run, spreadMs = 0 } = decoded.value;
    if (this.#isHeard || !online || run === this.#gatewayRun) return true;
    this.#gatewayRun = run;
    this.spreadMs = spreadMs;
    this.#gatewayIsThere.resolve();
    const hello = this.#hello;
    if (hello !== undefined)
      this.send(hello).catch((error: unknown) => this.incoming.fail(lost(reasonOf(error), error)));
    return true;
  }

  #onGatewayPresence(payload: Buffer): void {
    const decoded = decodePresence(payload);
    if (!decoded.ok) {
      this.#log.warn('gateway-presence-refused', { reason: decoded.reason });
      return;
    }
    const { online, sessionId: run, spreadMs = 0 } = decoded.value;
    if (online && this.#gatewayRun === undefined) {
      this.#gatewayRun = run;
      this.spreadMs = spreadMs;
      this.#gatewayIsThere.resolve();
    } else if (online && run !== this.#gatewayRun) {
      this.incoming.fail(lost('the gateway was restarted'));
    } else if (!online && run === this.#gatewayRun) {
      this.incoming.fail(lost('the gateway left the broker'));
    }
  }

  /** Reads the presence of lane 0 in another lane. It contains the number of lanes (PROTOCOL.md, clause SHA-3). */
  #onFirstPresence(payload: Buffer): void {
    const decoded = decodePresence(payload);
    if (!decoded.ok || !decoded.value.online || (decoded.value.shards ?? 1) > this.#lane) return;
    if (this.#noLane()) this.incoming.fail(lost(`lane ${this.#lane} is no more`));
  }

  #failureOf(error: Error): PayboxError {
    const refused = () => notRegistered(this.#broker, this.#identity.terminalCode);
    return brokerFailure(error, { broker: this.#broker, accepted: this.#onBroker, refused });
  }

  #notThere(reason: string): PayboxError {
    if (!this.#onBroker) return unreachable(this.#broker, reason);
    return new MissingPeerError(`the gateway is not at ${this.#broker}: ${reason}`, NO_GATEWAY_FIX);
  }

  async #sayGoodbye(): Promise<void> {
    const connected = this.#client.connected;
    this.incoming.close();
    if (connected) {
      const polite = this.#announce(false).then(() => this.#client.endAsync());
      const said = polite.then(
        () => true,
        () => false,
      );
      // A broker that shuts down never answers, and a pending publish does not fail when the connection ends.
      const left = new Promise<boolean>((resolve) => this.#client.once('close', () => resolve(false)));
      if (await withDeadline(this.#clock, GOODBYE_TIMEOUT_MS, Promise.race([said, left]))) return;
    }
    this.#client.end(true);
  }
}
