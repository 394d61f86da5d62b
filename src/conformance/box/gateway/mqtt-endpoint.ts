import type { EventEmitter } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { Aedes, type AedesOptions, type AuthenticateError, type Client } from 'aedes';
import type { Random } from '../../../lib/random.ts';
import { decodePresence, encode } from '../../../protocol/codec.ts';
import { goneProofOf } from '../../../protocol/keys.ts';
import { MESSAGE_VERSION, type Presence } from '../../../protocol/messages.ts';
import { boxMayPublish, boxMaySubscribe, boxTopic, GATEWAY_PRESENCE_TOPIC } from '../../../protocol/topics.ts';
import {
  type Connection,
  type EndpointEvents,
  type GatewayEndpoint,
  type JudgedIdentity,
  type ListenAddress,
  loginProblem,
  openServer,
} from './endpoint.ts';
import { type TlsIdentity, TlsListener } from './tls-listener.ts';

const PORT_OPTION = '--mqtt-port';
const CONNECTIONS_MAX = 64;
const PRESENCES_MAX = 10_000;
const CONNECT_TIMEOUT_MS = 10_000;
/** PROTOCOL.md, clause TOP-4. */
const KEEPALIVE_SECONDS_MAX = 600;
/** MQTT 3.1.1, section 3.1.2.2. */
const PROTOCOL_LEVEL = 4;
/** CONNACK return code for a bad user name or password (MQTT 3.1.1, section 3.2.2.3). */
const BAD_CREDENTIALS = 4;

type ConnectPacket = Parameters<NonNullable<AedesOptions['preConnect']>>[1];

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

export interface BrokerDeps {
  random: Random;
  events: EndpointEvents;
  /** If undefined, it uses no TLS. */
  tls?: TlsIdentity | undefined;
}

/** A gateway with its own broker (PROTOCOL.md, clauses TOP and PRE). */
export class MqttEndpoint implements GatewayEndpoint {
  readonly #identity: JudgedIdentity;
  readonly #deps: BrokerDeps;
  readonly #sockets = new Set<Socket>();
  readonly #connections = new WeakMap<Client, MqttConnection>();
  /** The CONNECT packets of the clients. */
  readonly #packets = new WeakMap<Client, ConnectPacket>();
  #server: Server | undefined;
  #aedes: Aedes | undefined;
  #run: string | undefined;
  /** Presence messages of the box, and of its last will. */
  readonly presences: Presence[] = [];
  tls: TlsListener | undefined;
  connectionCount = 0;
  port = 0;

  private constructor(identity: JudgedIdentity, deps: BrokerDeps) {
    this.#identity = identity;
    this.#deps = deps;
  }

  /** Throws ConfigError when the address cannot be used. */
  static async open(at: ListenAddress, identity: JudgedIdentity, deps: BrokerDeps): Promise<MqttEndpoint> {
    const endpoint = new MqttEndpoint(identity, deps);
    // No limit: above a limit aedes queues without bound, and thousands of queued calls overflow the stack.
    const aedes = await Aedes.createBroker({
      ...endpoint.#rights(),
      connectTimeout: CONNECT_TIMEOUT_MS,
      concurrency: 0,
    });
    endpoint.#aedes = aedes;
    // Here connections break on purpose, and some speak no MQTT. Without a listener an error would end the process.
    (aedes as EventEmitter).on('error', () => undefined);
    aedes.on('publish', (packet, client) => endpoint.#onPublish(packet, client));
    endpoint.port = await endpoint
      .#listen(at, (socket) => aedes.handle(socket))
      .catch(async (error: unknown) => {
        await new Promise<void>((resolve) => aedes.close(resolve));
        throw error;
      });
    await endpoint.restart();
    return endpoint;
  }

  async #listen(at: ListenAddress, handle: (socket: Socket) => void): Promise<number> {
    const onSocket = (socket: Socket) => {
      this.connectionCount += 1;
      this.#sockets.add(socket);
      socket.setNoDelay(true);
      socket.once('close', () => this.#sockets.delete(socket));
      handle(socket);
    };
    const { tls } = this.#deps;
    if (tls !== undefined) {
      this.tls = await TlsListener.open(at, PORT_OPTION, tls, onSocket);
      return this.tls.port;
    }
    const server = createServer(onSocket);
    server.maxConnections = CONNECTIONS_MAX;
    this.#server = server;
    return openServer(server, at, PORT_OPTION);
  }

  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async restart(): Promise<void> {
    this.#run = this.#deps.random.uuid();
    await this.#publishPresence(true);
  }

  /** Publishes the gateway's presence as offline, until `restart`. */
  async goOffline(): Promise<void> {
    await this.#publishPresence(false);
    this.#run = undefined;
  }

  async close(): Promise<void> {
    const closed = this.#server && new Promise((resolve) => this.#server?.close(resolve));
    await new Promise<void>((resolve) => this.#aedes?.close(resolve));
    this.cut();
    await Promise.all([closed, this.tls?.close()]);
  }

  async #publishPresence(online: boolean): Promise<void> {
    const sessionId = this.#run ?? this.#deps.random.uuid();
    await this.#publish(GATEWAY_PRESENCE_TOPIC, encode({ v: MESSAGE_VERSION, online, sessionId }), true);
  }

  #publish(topic: string, payload: string | Uint8Array, retain: boolean): Promise<void> {
    const packet = { cmd: 'publish', topic, payload: Buffer.from(payload), qos: 1, retain, dup: false } as const;
    return new Promise((resolve, reject) => {
      this.#aedes?.publish(packet, (error) => (error ? reject(error) : resolve()));
    });
  }

  #rights(): AedesOptions {
    const { terminalCode } = this.#identity;
    const { events } = this.#deps;
    return {
      preConnect: (client, packet, done) => {
        this.#packets.set(client, packet);
        done(null, true);
      },
      authenticate: (client, username = '', password, done) => {
        const problem = loginProblem(this.#identity, username, String(password ?? ''));
        events.login({ transport: 'mqtt', username, problem });
        if (problem === undefined) {
          this.#connections.set(client, this.#connectionOf(client, this.#willOf(client)));
          done(null, true);
        } else done(Object.assign(new Error(problem), { returnCode: BAD_CREDENTIALS }) as AuthenticateError, false);
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
    const { events } = this.#deps;
    const packet = this.#packets.get(client);
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

  /** The presence in a publish. Reports its violations. */
  #presenceIn({ topic, payload, qos, retain = false }: Published, what: string): Presence | undefined {
    const { events } = this.#deps;
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
    this.#deps.events.violation('PRE-1', `${what} does not prove that it is the box that is gone`);
  }

  #connectionOf(client: Client, will: Presence | undefined): MqttConnection {
    const deliver = (bytes: string | Uint8Array) => {
      // A closed broker publishes nothing.
      this.#publish(boxTopic(this.#identity.terminalCode, 'down'), bytes, false).catch(() => undefined);
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
    const { events } = this.#deps;
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
      this.#deps.events.violation('TOP-6', `its client id ${clientId} tells its session`);
    }
    if (will !== undefined && will.sessionId !== sessionId) {
      this.#deps.events.violation('PRE-1', 'its birth names another session than its last will');
    }
  }
}

const hexOf = (id: string) => id.replaceAll('-', '').toLowerCase();
