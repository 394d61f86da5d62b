import type { AedesOptions, Client } from 'aedes';
import { reasonOf, systemCodeOf } from '../../../../lib/errors.ts';
import { decodePresence, encode } from '../../../../protocol/codec.ts';
import { goneProofOf } from '../../../../protocol/keys.ts';
import { MESSAGE_VERSION, type Presence } from '../../../../protocol/messages.ts';
import { PACKET_TOO_LONG } from '../../../../protocol/packet-limit.ts';
import { boxMayPublish, boxMaySubscribe, boxTopic, GATEWAY_PRESENCE_TOPIC } from '../../../../protocol/topics.ts';
import {
  type Connection,
  type EndpointWorld,
  type GatewayEndpoint,
  type JudgedIdentity,
  type ListenAddress,
  loginProblem,
} from './endpoint.ts';
import { loginRefused, type ScriptedBroker } from './scripted-broker.ts';
import type { TlsListener } from './tls-listener.ts';

const PRESENCES_MAX = 10_000;
/** PROTOCOL.md, clause TOP-4. */
const KEEPALIVE_SECONDS_MAX = 600;
/** MQTT 3.1.1, section 3.1.2.2. */
const PROTOCOL_LEVEL = 4;

/** A client id does not contain this many hexadecimal digits of the session by chance. */
const SESSION_HEX_MAX = 8;

/** A connection that has logged in. */
interface MqttConnection extends Connection {
  readonly transport: 'mqtt';
  readonly clientId: string;
  /** Its last will; undefined if there is no legal one. */
  readonly will: Presence | undefined;
  /** The session in its birth message. */
  sessionId: string | undefined;
}

interface Published {
  topic: string;
  payload: Uint8Array | string;
  qos: number;
  retain?: boolean;
}

/** Serves the box's MQTT connection, with a broker of its own (PROTOCOL.md, clauses TOP and PRE). */
export class MqttEndpoint implements GatewayEndpoint {
  readonly #identity: JudgedIdentity;
  readonly #world: EndpointWorld;
  readonly #connections = new WeakMap<Client, MqttConnection>();
  readonly #broker: ScriptedBroker;
  #run: string | undefined;
  /** Presence messages of the box, and of its last will. */
  readonly presences: Presence[] = [];

  constructor(identity: JudgedIdentity, world: EndpointWorld, broker: ScriptedBroker) {
    this.#broker = broker;
    this.#identity = identity;
    this.#world = world;
  }

  /** Listens, and announces the gateway. Throws ConfigError when the address cannot be used. */
  async listen(at: ListenAddress): Promise<void> {
    const { events, tls } = this.#world;
    await this.#broker.listen(at, this.#rights(), tls);
    const { aedes } = this.#broker;
    aedes.on('publish', (packet, client) => this.#onPublish(packet, client));
    aedes.on('clientError', (_client, error) => {
      if (systemCodeOf(error) === PACKET_TOO_LONG) events.violation('LIM-4', reasonOf(error));
    });
    await this.restart();
  }

  get tls(): TlsListener | undefined {
    return this.#broker.tls;
  }

  get connectionCount(): number {
    return this.#broker.connectionCount;
  }

  get port(): number {
    return this.#broker.port;
  }

  cut(): void {
    this.#broker.cut();
  }

  async restart(): Promise<void> {
    this.#run = this.#world.random.uuid();
    await this.#publishPresence(true);
  }

  /** Publishes the gateway's presence as offline, until `restart`. */
  async goOffline(): Promise<void> {
    await this.#publishPresence(false);
    this.#run = undefined;
  }

  async close(): Promise<void> {
    await this.#broker.close();
  }

  async #publishPresence(online: boolean): Promise<void> {
    const sessionId = this.#run ?? this.#world.random.uuid();
    await this.#broker.publish(GATEWAY_PRESENCE_TOPIC, encode({ v: MESSAGE_VERSION, online, sessionId }), true);
  }

  #rights(): AedesOptions {
    const { terminalCode } = this.#identity;
    const { events } = this.#world;
    return {
      authenticate: (client, username = '', password, done) => {
        const problem = loginProblem(this.#identity, username, String(password ?? ''));
        events.login({ transport: 'mqtt', username, problem });
        if (problem === undefined) {
          this.#connections.set(client, this.#connectionOf(client, this.#willOf(client)));
          done(null, true);
        } else done(loginRefused(problem), false);
      },
      authorizePublish: (_client, packet, done) => {
        const isAllowed = boxMayPublish(terminalCode, packet.topic);
        if (!isAllowed) events.violation('TOP-3', `published to ${packet.topic}`);
        done(isAllowed ? null : new Error('publish refused'));
      },
      authorizeSubscribe: (_client, subscription, done) => {
        const { topic, qos } = subscription;
        const isAllowed = boxMaySubscribe(terminalCode, topic);
        if (!isAllowed) events.violation('TOP-3', `subscribed to ${topic}`);
        if (qos !== 1) events.violation('TOP-1', `subscribed to ${topic} with QoS ${qos}`);
        done(null, isAllowed ? subscription : null);
      },
    };
  }

  /** Checks a CONNECT packet. Returns its last will; undefined if there is no legal one. */
  #willOf(client: Client): Presence | undefined {
    const { events } = this.#world;
    const packet = this.#broker.connectOf(client);
    const { protocolVersion, clean, keepalive = 0, will } = packet ?? {};
    if (protocolVersion !== PROTOCOL_LEVEL) events.violation('TOP-1', `MQTT of protocol level ${protocolVersion}`);
    if (clean !== true) events.violation('TOP-1', 'connected without a clean session');
    if (keepalive < 1 || keepalive > KEEPALIVE_SECONDS_MAX) events.violation('TOP-4', `a keepalive of ${keepalive} s`);
    if (will === undefined) {
      events.violation('PRE-1', 'connected without a last will');
      return undefined;
    }
    const presence = this.#presenceIn({ ...will, qos: will.qos ?? 0 }, 'its last will');
    if (presence?.online === true) events.violation('PRE-1', 'its last will says that it is online');
    return presence;
  }

  /** Returns the presence in a publish. Reports its violations. */
  #presenceIn({ topic, payload, qos, retain = false }: Published, what: string): Presence | undefined {
    const { events } = this.#world;
    const expected = boxTopic(this.#identity.terminalCode, 'presence');
    const decoded = decodePresence(Buffer.from(payload));
    if (topic !== expected) events.violation('PRE-1', `${what} goes to ${topic}, not to ${expected}`);
    if (!retain || qos !== 1)
      events.violation('PRE-1', `${what} goes with QoS ${qos}${retain ? '' : ' and is not retained'}`);
    if (decoded.ok) {
      this.#checkProof(decoded.value, what);
      return decoded.value;
    }
    events.violation('PRE-1', `${what} is no presence: ${decoded.reason}`);
    return undefined;
  }

  #checkProof({ online, sessionId, proof }: Presence, what: string): void {
    const { secret, terminalCode } = this.#identity;
    if (online || proof === goneProofOf(secret, terminalCode, sessionId)) return;
    this.#world.events.violation('PRE-1', `${what} does not prove that it is the box that is gone`);
  }

  #connectionOf(client: Client, will: Presence | undefined): MqttConnection {
    const deliver = (bytes: string | Uint8Array) => {
      // A closed broker publishes nothing.
      this.#broker.publish(boxTopic(this.#identity.terminalCode, 'down'), bytes).catch(() => undefined);
    };
    const run = () => this.#run ?? '';
    return {
      transport: 'mqtt',
      get challenge() {
        return run();
      },
      clientId: client.id,
      will,
      sessionId: undefined,
      get isOpen() {
        return client.connected;
      },
      deliver,
    };
  }

  #onPublish(packet: Published, client: Client | null): void {
    const { events } = this.#world;
    const { terminalCode } = this.#identity;
    const connection = client === null ? undefined : this.#connections.get(client);
    if (packet.topic === boxTopic(terminalCode, 'presence')) {
      const presence = this.#presenceIn(packet, 'its presence');
      if (presence !== undefined && this.presences.length < PRESENCES_MAX) this.presences.push(presence);
      if (connection !== undefined && presence?.online === true) this.#onBirth(connection, presence);
    } else if (packet.topic === boxTopic(terminalCode, 'up') && connection !== undefined) {
      if (packet.qos !== 1 || packet.retain === true) {
        events.violation('TOP-1', `sent with QoS ${packet.qos}${packet.retain === true ? ', retained' : ''}`);
      }
      if (this.#run === undefined) events.violation('PRE-2', 'sent a message while no gateway is present');
      events.message(connection, Buffer.from(packet.payload));
    }
  }

  #onBirth(connection: MqttConnection, { sessionId }: Presence): void {
    connection.sessionId = sessionId;
    const { will, clientId } = connection;
    if (hexOf(clientId).includes(hexOf(sessionId).slice(0, SESSION_HEX_MAX))) {
      this.#world.events.violation('TOP-6', `its client id ${clientId} tells its session`);
    }
    if (will !== undefined && will.sessionId !== sessionId) {
      this.#world.events.violation('PRE-1', 'its birth names another session than its last will');
    }
  }
}

const hexOf = (id: string) => id.replaceAll('-', '').toLowerCase();
