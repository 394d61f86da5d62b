import type { EventEmitter } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { type Duplex, duplexPair, Readable } from 'node:stream';
import { createServer as createTlsServer } from 'node:tls';
import { Aedes, type AedesPublishPacket, type Client } from 'aedes';
import memory, { type Persistence } from 'aedes-persistence';
import { Callers } from '../../lib/callers.ts';
import { Connections } from '../../lib/connections.ts';
import { reasonOf } from '../../lib/errors.ts';
import { listenOn, readServerTls, type ServerTlsFiles, UNREAD_BYTES_MAX, urlHost } from '../../lib/listen.ts';
import type { Logger } from '../../lib/log.ts';
import { acceptProxyHeaders } from '../../lib/proxy-protocol.ts';
import { HANDSHAKE_TIMEOUT_MS, TLS_FLOOR } from '../../lib/tls.ts';
import { decodePresence } from '../../protocol/codec.ts';
import { LimitedSocket, PACKET_BYTES_MAX, readWhole } from '../../protocol/packet-limit.ts';
import type { Stored } from '../common/stored.ts';
import type { World } from '../common/world.ts';
import { addressOf, type BrokerLogin, boxOf, rights } from './broker-rights.ts';
import { connectionToEvict } from './connection.ts';
import type { Listeners } from './dialect/listeners.ts';

/** Together with the HTTP connections this is below 20,000, the limit of open files on many machines. */
const CONNECTIONS_MAX = 12_000;
/**
 * How many connections one box may have: the one in use, dead ones not yet noticed, and those of a stranger with its
 * login.
 */
const CONNECTIONS_PER_BOX_MAX = 8;
const SOCKET_LIMITS = { packetBytesMax: PACKET_BYTES_MAX, unreadBytesMax: UNREAD_BYTES_MAX };
const CONNECT_TIMEOUT_MS = 10_000;
/** A longer keepalive, or none, is refused: the broker would notice a dead connection too late or never. */
const KEEPALIVE_SECONDS_MAX = 600;
const LOGIN_BYTES = 32;
const WILDCARD = /[+#]/;

export interface EmbeddedBroker {
  url: string;
  login: BrokerLogin;
  /** Opens a connection to the broker inside this process. */
  connect(): Duplex;
  /** Returns a function that ends the present connections of a box, because its login is no longer valid. */
  dropper(terminalCode: string): () => void;
  close(): Promise<void>;
}

/** Address of the broker, its TLS files, and the proxies in front of it. */
export interface BrokerListener {
  host: string;
  port: number;
  /** With `clientCa`, each client needs a certificate of this CA, and may only log in as the name in it. */
  tls?: (ServerTlsFiles & { clientCa?: string | undefined }) | undefined;
  /** Proxies that name the real client in a PROXY header. Left out, there are none. */
  proxies?: readonly string[] | undefined;
}

/** The broker reads the sessions of boxes here and reports connections. */
export interface BrokerOptions {
  /** The login of the broker that this one replaces. Left out, a new one is made. */
  login?: BrokerLogin | undefined;
  /** Returns the session in use of this box. */
  sessionInUse: (terminalCode: string) => string | undefined;
  /** The highest number of connections. The default is CONNECTIONS_MAX. */
  connectionsMax?: number | undefined;
  onBoxConnected?: (terminalCode: string, socket: Socket) => void;
  /** Records who listens on the topics of boxes without a login of their own. */
  listeners?: Listeners | undefined;
  /** Called when the last connection of this box has ended. Without a last will the hub has no other report of it. */
  onBoxGone: (terminalCode: string) => void;
}

/**
 * Starts the embedded broker: each box has a login and topic rights (PROTOCOL.md, clauses TOP-2 and TOP-3). Throws
 * ConfigError if the port is taken or a certificate cannot be used.
 */
export async function startBroker(
  at: BrokerListener,
  world: World,
  stored: Stored,
  options: BrokerOptions,
): Promise<EmbeddedBroker> {
  const { clock, random, log } = world;
  const server = serverFor(at, log);
  const { login = { username: 'gateway', password: random.secret(LOGIN_BYTES) } } = options;
  const aedes = await Aedes.createBroker({
    ...rights(world, stored, login),
    connectTimeout: CONNECT_TIMEOUT_MS,
    keepaliveLimit: KEEPALIVE_SECONDS_MAX,
    persistence: retainedByTopic(memory()),
    // There is no limit: above one, the broker queues without bound, and thousands of queued calls overflow the stack.
    concurrency: 0,
  });
  const clients = watch(aedes, world, options, login);
  options.listeners?.watch(aedes);
  // This also counts connections whose handshake is not finished.
  const connections = new Connections(options.connectionsMax ?? CONNECTIONS_MAX);
  const callers = new Callers(at.proxies);
  server.on('connection', (socket) => connections.add(socket, callers.ofConnection(socket)));
  aedes.on('client', ({ conn }) => {
    if (conn instanceof LimitedSocket) connections.setState(conn.socket, 'active');
  });
  server.on(at.tls === undefined ? 'connection' : 'secureConnection', (socket: Socket) => {
    const address = callers.ofConnection(socket);
    aedes.handle(new LimitedSocket(socket, { ...SOCKET_LIMITS, address }));
  });
  const endWaiting = acceptProxyHeaders(server, 'mqtt.embedded', { callers, clock, log });
  const port = await listenOn(server, at, 'mqtt.embedded').catch(async (error: unknown) => {
    await new Promise<void>((resolve) => aedes.close(resolve));
    throw error;
  });
  return {
    url: `${at.tls === undefined ? 'mqtt' : 'mqtts'}://${urlHost(at.host)}:${port}`,
    login,
    connect: () => {
      const [ours, brokers] = duplexPair();
      // Without this the other half would stay open.
      brokers.once('close', () => ours.destroy());
      aedes.handle(readWhole(brokers));
      return ours;
    },
    dropper: (terminalCode) => {
      const going = [...(clients.get(terminalCode) ?? [])];
      return () => {
        for (const client of going) client.close();
      };
    },
    close: async () => {
      // A connection that ends because the broker closes is not a failure.
      for (const event of ['clientError', 'connectionError', 'clientDisconnect']) aedes.removeAllListeners(event);
      const closed = new Promise((resolve) => server.close(resolve));
      await new Promise<void>((resolve) => aedes.close(resolve));
      connections.end();
      endWaiting();
      await closed;
    },
  };
}

function serverFor({ tls }: BrokerListener, log: Logger): Server {
  if (tls === undefined) return createServer();
  const { clientCa, ...files } = tls;
  const { ca, ...own } = readServerTls({ ...files, ca: clientCa }, 'mqtt.embedded.tls');
  const asked = ca === undefined ? {} : { ca, requestCert: true, rejectUnauthorized: true };
  const server = createTlsServer({ ...TLS_FLOOR, ...own, ...asked, handshakeTimeout: HANDSHAKE_TIMEOUT_MS });
  server.on('tlsClientError', (error) => log.warn('mqtt-handshake-refused', { reason: reasonOf(error) }));
  return server;
}

/** Returns the session in the last will of a connection, or undefined without one. */
function sessionOf({ will }: Client & { will?: { payload: Buffer } | null }): string | undefined {
  const decoded = will ? decodePresence(will.payload) : undefined;
  return decoded?.ok ? decoded.value.sessionId : undefined;
}

/** Tracks the connections of each box. */
function watch(
  aedes: Aedes,
  { config, log }: World,
  { sessionInUse, onBoxConnected, onBoxGone }: BrokerOptions,
  login: BrokerLogin,
): ReadonlyMap<string, ReadonlySet<Client>> {
  const connections = new Map<string, Set<Client>>();
  const isShared = (username: string) => username === config.vietqrBoxes?.login.username;
  aedes.on('client', (client) => {
    const box = boxOf(client);
    const own = connections.get(box) ?? new Set();
    connections.set(box, own.add(client));
    if (client.conn instanceof LimitedSocket) onBoxConnected?.(box, client.conn.socket);
    // All boxes of the dialect share one login, so it may have many connections. The limit of all connections applies.
    if (own.size <= CONNECTIONS_PER_BOX_MAX || isShared(box)) return;
    const sessionId = sessionInUse(box);
    // The first connection that names the session in use belongs to the box. A stranger can only copy the name later.
    const inUse = [...own].find((it) => sessionId !== undefined && sessionOf(it) === sessionId);
    log.warn('mqtt-connection-ended', { box, reason: `more than ${CONNECTIONS_PER_BOX_MAX} connections of one box` });
    connectionToEvict([...own], addressOf, (it) => it === inUse)?.close();
  });
  aedes.on('clientDisconnect', (client) => {
    const box = boxOf(client);
    const own = connections.get(box);
    own?.delete(client);
    if (own === undefined || own.size > 0) return;
    connections.delete(box);
    if (box !== login.username) onBoxGone(box);
  });
  const failed = (client: Client, error: Error) =>
    log.warn('mqtt-connection-failed', { client: client.id ?? undefined, reason: reasonOf(error) });
  // The library's types lack this event. Without a listener the error would end the process.
  (aedes as EventEmitter).on('error', (error) => log.error('broker-failed', { reason: reasonOf(error) }));
  aedes.on('clientError', failed);
  aedes.on('connectionError', failed);
  return connections;
}

/**
 * Looks up retained messages by topic if a subscription names topics, as those of boxes do. The library compares every
 * retained topic with every filter, which costs n² when n boxes reconnect together. The library still handles filters
 * with wildcards.
 */
export function retainedByTopic(memory: Persistence): Persistence {
  const retained = new Map<string, AedesPublishPacket>();
  const storeRetained = memory.storeRetained.bind(memory);
  const matching = memory.createRetainedStreamCombi.bind(memory);
  return Object.assign(memory, {
    storeRetained: (packet: AedesPublishPacket) => {
      if (packet.payload.length === 0) retained.delete(packet.topic);
      // The copy is needed, because the broker changes the packet later.
      else retained.set(packet.topic, { ...packet });
      return storeRetained(packet);
    },
    createRetainedStreamCombi: (filters: string[]) => {
      if (filters.some((filter) => WILDCARD.test(filter))) return matching(filters);
      return Readable.from(filters.flatMap((topic) => retained.get(topic) ?? []));
    },
  });
}
