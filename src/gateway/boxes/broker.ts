import type { EventEmitter } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { type Duplex, duplexPair } from 'node:stream';
import { Aedes, type AedesOptions, type AuthenticateError, type Client } from 'aedes';
import { reasonOf } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import type { Random } from '../../lib/random.ts';
import { equalSecrets } from '../../protocol/checksum.ts';
import { boxMayPublish, boxMaySubscribe, boxTopic } from '../../protocol/topics.ts';
import type { Directory } from '../directory.ts';
import { listenOn, urlHost } from '../listen.ts';
import { LimitedSocket } from './packet-limit.ts';

const CONNECTIONS_MAX = 20_000;
const CONNECT_TIMEOUT_MS = 10_000;
/** A box that asks for a longer keepalive, or for none, is refused: its end would be seen too late, or never. */
const KEEPALIVE_SECONDS_MAX = 600;
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
  close(): Promise<void>;
}

export interface BrokerDeps {
  directory: Directory;
  random: Random;
  log: Logger;
  /** No connection of this box is left; with a last will the hub knows already, without one only from here. */
  onBoxGone: (terminalCode: string) => void;
}

/**
 * Starts the embedded broker: a login per box and its topic rights (PROTOCOL.md, clauses TOP-2 and TOP-3).
 * Throws ConfigError when the port is taken.
 */
export async function startBroker(at: { host: string; port: number }, deps: BrokerDeps): Promise<EmbeddedBroker> {
  const login = { username: 'gateway', password: deps.random.secret(32) };
  const aedes = await Aedes.createBroker({
    ...rights(deps, login),
    connectTimeout: CONNECT_TIMEOUT_MS,
    keepaliveLimit: KEEPALIVE_SECONDS_MAX,
  });
  watch(aedes, deps, login);
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    aedes.handle(new LimitedSocket(socket));
  });
  server.maxConnections = CONNECTIONS_MAX;
  const port = await listenOn(server, at, 'mqtt.embedded').catch(async (error: unknown) => {
    await new Promise<void>((resolve) => aedes.close(resolve));
    throw error;
  });
  return {
    url: `mqtt://${urlHost(at.host)}:${port}`,
    login,
    connect: () => {
      const [ours, brokers] = duplexPair();
      aedes.handle(brokers);
      return ours;
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
  const known = username === login.username ? login.password : directory.box(username ?? '')?.secret;
  // Compared even for an unknown name, so that the answer's time does not tell which names are known.
  const right = equalSecrets(password, known ?? login.password);
  if (known === undefined || !right) return { text: 'unknown box or wrong secret', code: BAD_CREDENTIALS };
  if (!client.clean) return { text: 'clean session is required', code: NOT_AUTHORIZED };
  return undefined;
}

/** The name that a client logged in with, which its id begins with. */
function boxOf(client: Client): string {
  return client.id.split('/', 1)[0] ?? '';
}

function watch(aedes: Aedes, { log, onBoxGone }: BrokerDeps, login: BrokerLogin): void {
  const connections = new Map<string, number>();
  const count = (box: string, by: 1 | -1) => {
    const left = (connections.get(box) ?? 0) + by;
    if (left > 0) connections.set(box, left);
    else connections.delete(box);
    return left;
  };
  aedes.on('client', (client) => count(boxOf(client), 1));
  aedes.on('clientDisconnect', (client) => {
    const box = boxOf(client);
    if (count(box, -1) === 0 && box !== login.username) onBoxGone(box);
  });
  const failed = (client: Client, error: Error) =>
    log.warn('mqtt-connection-failed', { client: client.id ?? undefined, reason: reasonOf(error) });
  // Not among its typed events; without a listener it would end the process.
  (aedes as EventEmitter).on('error', (error) => log.error('broker-failed', { reason: reasonOf(error) }));
  aedes.on('clientError', failed);
  aedes.on('connectionError', failed);
}
