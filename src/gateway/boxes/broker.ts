import type { EventEmitter } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { type Duplex, duplexPair } from 'node:stream';
import { createServer as createTlsServer, TLSSocket } from 'node:tls';
import { Aedes, type AedesOptions, type AuthenticateError, type Client } from 'aedes';
import memory from 'aedes-persistence';
import { reasonOf } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import type { Random } from '../../lib/random.ts';
import { HANDSHAKE_TIMEOUT_MS, TLS_FLOOR } from '../../lib/tls.ts';
import { equalSecrets } from '../../protocol/checksum.ts';
import { loginOf } from '../../protocol/keys.ts';
import { boxMayPublish, boxMaySubscribe, boxTopic } from '../../protocol/topics.ts';
import type { Directory } from '../directory.ts';
import { listenOn, readServerTls, type ServerTlsFiles, urlHost } from '../listen.ts';
import { LimitedSocket } from './packet-limit.ts';
import { retainedByTopic } from './retained.ts';

const CONNECTIONS_MAX = 20_000;
const CONNECT_TIMEOUT_MS = 10_000;
/** A box that asks for a longer keepalive, or for none, is refused: its end would be seen too late, or never. */
const KEEPALIVE_SECONDS_MAX = 600;
const LOGIN_BYTES = 32;
/** MQTT's CONNACK codes for wrong credentials and for missing rights. */
const BAD_CREDENTIALS = 4;
const NOT_AUTHORIZED = 5;

/** The gateway's own login, which boxes cannot know. */
export interface BrokerLogin {
  username: string;
  password: string;
}

export interface EmbeddedBroker {
  url: string;
  login: BrokerLogin;
  /** A connection to the broker inside this process. */
  connect(): Duplex;
  /** Ends the connections of a box whose login is not good any more. */
  drop(terminalCode: string): void;
  close(): Promise<void>;
}

/** Where the broker listens, and with `tls` how. */
export interface BrokerListener {
  host: string;
  port: number;
  /** With `clientCa` only who shows a certificate by it is heard, and only under the name in it. */
  tls?: (ServerTlsFiles & { clientCa?: string | undefined }) | undefined;
}

export interface BrokerDeps {
  directory: Directory;
  random: Random;
  log: Logger;
  /** That of the broker in whose place this one starts; a new one if left out. */
  login?: BrokerLogin | undefined;
  /** There is a connection of this box. */
  onBoxConnected?: (terminalCode: string, socket: LimitedSocket) => void;
  /** No connection of this box is left; with a last will the hub knows already, without one only from here. */
  onBoxGone: (terminalCode: string) => void;
}

/**
 * Starts the embedded broker: a login per box and its topic rights (PROTOCOL.md, clauses TOP-2 and TOP-3).
 * Throws ConfigError when the port is taken or a certificate cannot be used.
 */
export async function startBroker(at: BrokerListener, deps: BrokerDeps): Promise<EmbeddedBroker> {
  const server = serverFor(at, deps.log);
  const { login = { username: 'gateway', password: deps.random.secret(LOGIN_BYTES) } } = deps;
  const aedes = await Aedes.createBroker({
    ...rights(deps, login),
    connectTimeout: CONNECT_TIMEOUT_MS,
    keepaliveLimit: KEEPALIVE_SECONDS_MAX,
    persistence: retainedByTopic(memory()),
    // Without a limit: what is above one is queued without any, and thousands in it overflow the stack, and end the process.
    concurrency: 0,
  });
  const connections = watch(aedes, deps, login);
  const sockets = new Set<Socket>();
  // The bare connections, those whose handshake is not done among them.
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.on(at.tls === undefined ? 'connection' : 'secureConnection', (socket: Socket) => {
    aedes.handle(new LimitedSocket(socket));
  });
  server.maxConnections = CONNECTIONS_MAX;
  const port = await listenOn(server, at, 'mqtt.embedded').catch(async (error: unknown) => {
    await new Promise<void>((resolve) => aedes.close(resolve));
    throw error;
  });
  return {
    url: `${at.tls === undefined ? 'mqtt' : 'mqtts'}://${urlHost(at.host)}:${port}`,
    login,
    connect: () => {
      const [ours, brokers] = duplexPair();
      // As on a network, where an end that is not answered would leave the other half open.
      brokers.once('close', () => ours.destroy());
      aedes.handle(brokers);
      return ours;
    },
    drop: (terminalCode) => {
      for (const client of connections.get(terminalCode) ?? []) client.close();
    },
    close: async () => {
      // Connections that end because the broker does are no failures.
      for (const event of ['clientError', 'connectionError', 'clientDisconnect']) aedes.removeAllListeners(event);
      const closed = new Promise((resolve) => server.close(resolve));
      await new Promise<void>((resolve) => aedes.close(resolve));
      for (const socket of sockets) socket.destroy();
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

function rights({ directory, log }: BrokerDeps, login: BrokerLogin): AedesOptions {
  const refuse = (event: string, box: string | undefined, fields: Record<string, string>) =>
    log.warn(event, { box, ...fields });
  return {
    preConnect: (_client, packet, done) => {
      const { will, username } = packet;
      if (will === undefined || username === login.username || mayPublish(username ?? '', will)) {
        done(null, true);
        return;
      }
      refuse('mqtt-login-refused', username, { reason: `a last will on ${will.topic} is not allowed` });
      done(new Error('the last will is not allowed'), false);
    },
    authenticate: (client, username, password, done) => {
      const reason = loginProblem(directory, login, client, username, password?.toString('utf8') ?? '');
      if (reason === undefined) {
        // Client ids are the boxes' own choice: without its name before it, one box could end another's connection.
        Object.assign(client, { id: `${username}/${client.id}` });
        done(null, true);
        return;
      }
      refuse('mqtt-login-refused', username, { client: client.id, reason: reason.text });
      done(Object.assign(new Error(reason.text), { returnCode: reason.code }) as AuthenticateError, false);
    },
    authorizePublish: (client, packet, done) => {
      const box = client === null ? undefined : boxOf(client);
      if (box === login.username || (box !== undefined && mayPublish(box, packet))) {
        done(null);
        return;
      }
      refuse('mqtt-publish-refused', box, { topic: packet.topic, reason: 'not a topic of this box' });
      done(new Error('publish refused'));
    },
    authorizeSubscribe: (client, subscription, done) => {
      const box = boxOf(client);
      if (box === login.username || boxMaySubscribe(box, subscription.topic)) {
        done(null, subscription);
        return;
      }
      refuse('mqtt-subscribe-refused', box, { topic: subscription.topic, reason: 'not a topic of this box' });
      done(null, null);
    },
    // A second lock on what matters most: a push or payment never reaches another box than its own.
    authorizeForward: (client, packet) => {
      const box = boxOf(client);
      return box === login.username || boxMaySubscribe(box, packet.topic) ? packet : null;
    },
  };
}

/** Clause TOP-3, for publishing and for last wills; a retained message on `up` would come again to every later gateway. */
function mayPublish(box: string, packet: { topic: string; retain?: boolean }): boolean {
  return boxMayPublish(box, packet.topic) && (packet.retain !== true || packet.topic === boxTopic(box, 'presence'));
}

function loginProblem(
  directory: Directory,
  login: BrokerLogin,
  client: Client,
  username: string | undefined,
  password: string,
): { text: string; code: number } | undefined {
  const secret = directory.box(username ?? '')?.secret;
  const known = username === login.username ? login.password : secret && loginOf(secret);
  // Compared even for an unknown name, so that the answer's time does not tell which names are known.
  const right = equalSecrets(password, known ?? login.password);
  if (known === undefined || !right) return { text: 'unknown box or wrong secret', code: BAD_CREDENTIALS };
  const certified = certifiedName(client);
  if (certified !== undefined && certified !== username) {
    return { text: `the certificate is that of ${certified || 'nobody'}`, code: NOT_AUTHORIZED };
  }
  if (!client.clean) return { text: 'clean session is required', code: NOT_AUTHORIZED };
  return undefined;
}

/** The name in the certificate that this client was asked for; empty without exactly one; undefined if it was not asked. */
function certifiedName({ conn }: Client): string | undefined {
  if (!(conn instanceof LimitedSocket && conn.socket instanceof TLSSocket && conn.socket.authorized)) return undefined;
  const name: unknown = conn.socket.getPeerCertificate().subject?.CN;
  return typeof name === 'string' ? name : '';
}

/** The name that a client logged in with, which its id begins with. */
function boxOf(client: Client): string {
  return client.id.split('/', 1)[0] ?? '';
}

/** The connections of each box, as they come and go. */
function watch(
  aedes: Aedes,
  { log, onBoxConnected, onBoxGone }: BrokerDeps,
  login: BrokerLogin,
): ReadonlyMap<string, ReadonlySet<Client>> {
  const connections = new Map<string, Set<Client>>();
  aedes.on('client', (client) => {
    const own = connections.get(boxOf(client)) ?? new Set();
    connections.set(boxOf(client), own.add(client));
    if (client.conn instanceof LimitedSocket) onBoxConnected?.(boxOf(client), client.conn);
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
  // Not among its typed events; without a listener it would end the process.
  (aedes as EventEmitter).on('error', (error) => log.error('broker-failed', { reason: reasonOf(error) }));
  aedes.on('clientError', failed);
  aedes.on('connectionError', failed);
  return connections;
}
