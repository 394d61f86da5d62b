import type { EventEmitter } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { Aedes, type AedesOptions, type AuthenticateError, type Client } from 'aedes';
import { LimitedSocket, READ_PACKET_BYTES_MAX } from '../../../../protocol/packet-limit.ts';
import { type ListenAddress, openServer, type TlsIdentity } from './endpoint.ts';
import { TlsListener } from './tls-listener.ts';

const PORT_OPTION = '--mqtt-port';
const CONNECTIONS_MAX = 64;
/** Packets are longer than the protocol allows, so that checks see the packet. */
const LIMITS = { packetBytesMax: READ_PACKET_BYTES_MAX, unreadBytesMax: 1_048_576 };
const CONNECT_TIMEOUT_MS = 10_000;
/** CONNACK return code for a bad user name or password (MQTT 3.1.1, section 3.2.2.3). */
const BAD_CREDENTIALS = 4;

export type ConnectPacket = Parameters<NonNullable<AedesOptions['preConnect']>>[1];

/** Runs a broker that does what a check wants: it breaks connections, is away, or shows a wrong certificate. */
export class ScriptedBroker {
  readonly aedes: Aedes;
  readonly #sockets = new Set<Socket>();
  readonly #connects = new WeakMap<Client, ConnectPacket>();
  #server: Server | undefined;
  tls: TlsListener | undefined;
  connectionCount = 0;
  port = 0;
  /** True if it ends each new connection at once. */
  isAway = false;

  private constructor(aedes: Aedes) {
    this.aedes = aedes;
    aedes.preConnect = (client, packet, done) => {
      this.#connects.set(client, packet);
      done(null, true);
    };
  }

  /** Makes a broker that does not listen yet. */
  static async create(): Promise<ScriptedBroker> {
    // No limit: above a limit aedes queues without bound, and thousands of queued calls overflow the stack.
    const aedes = await Aedes.createBroker({ connectTimeout: CONNECT_TIMEOUT_MS, concurrency: 0 });
    // Here connections break on purpose, and some speak no MQTT. Without a listener an error would end the process.
    (aedes as EventEmitter).on('error', () => undefined);
    return new ScriptedBroker(aedes);
  }

  /** Listens with these rights, without TLS if `tls` is undefined. Throws ConfigError when the address cannot be used. */
  async listen(at: ListenAddress, rights: AedesOptions, tls: TlsIdentity | undefined): Promise<void> {
    Object.assign(this.aedes, rights);
    const onSocket = (socket: Socket) => {
      this.connectionCount += 1;
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
      if (this.isAway) socket.destroy();
      else this.aedes.handle(new LimitedSocket(socket, LIMITS));
    };
    try {
      if (tls !== undefined) {
        this.tls = await TlsListener.open(at, PORT_OPTION, tls, onSocket);
        this.port = this.tls.port;
        return;
      }
      const server = createServer(onSocket);
      server.maxConnections = CONNECTIONS_MAX;
      this.port = await openServer(server, at, PORT_OPTION);
      this.#server = server;
    } catch (error) {
      await new Promise<void>((resolve) => this.aedes.close(resolve));
      throw error;
    }
  }

  /** Returns the CONNECT packet of a client. */
  connectOf(client: Client): ConnectPacket | undefined {
    return this.#connects.get(client);
  }

  /** Publishes with QoS 1. Rejects at a closed broker. */
  publish(topic: string, payload: string | Uint8Array, retain = false): Promise<void> {
    const packet = { cmd: 'publish', topic, payload: Buffer.from(payload), qos: 1, retain, dup: false } as const;
    return new Promise((resolve, reject) => {
      this.aedes.publish(packet, (error) => (error ? reject(error) : resolve()));
    });
  }

  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async close(): Promise<void> {
    const closed = this.#server && new Promise((resolve) => this.#server?.close(resolve));
    await new Promise<void>((resolve) => this.aedes.close(resolve));
    this.cut();
    await Promise.all([closed, this.tls?.close()]);
  }
}

/** Returns the answer of a broker to a login that it refuses. */
export function loginRefused(problem: string): AuthenticateError {
  return Object.assign(new Error(problem), { returnCode: BAD_CREDENTIALS }) as AuthenticateError;
}
