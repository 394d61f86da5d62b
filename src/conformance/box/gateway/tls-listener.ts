import type { Socket } from 'node:net';
import { createServer, type Server, type TLSSocket } from 'node:tls';
import { HANDSHAKE_TIMEOUT_MS, TLS_FLOOR } from '../../../lib/tls.ts';
import type { ListenAddress } from './endpoint.ts';
import { openServer } from './listening.ts';

/** What a server shows of itself in a handshake, PEM; and what it can speak, where that is not what it should. */
export interface TlsIdentity {
  cert: string;
  key: string;
  limits?: { minVersion: 'TLSv1' | 'TLSv1.2'; maxVersion: 'TLSv1.1' | 'TLSv1.2'; ciphers: string };
}

/** The faces of one gateway, of which a box may take the right one only. */
export interface TlsIdentities {
  /** What the box has to trust, PEM. */
  ca: string;
  valid: TlsIdentity;
  /** Made by another authority. */
  otherAuthority: TlsIdentity;
  expired: TlsIdentity;
  /** Made for another host. */
  otherHost: TlsIdentity;
}

const CONNECTIONS_MAX = 64;

/** TLS before a server that knows nothing of it (PROTOCOL.md, clauses TLS-1 and TLS-2). */
export class TlsListener {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  /** Connections that there were, whatever became of their handshake. */
  handshakes = 0;
  port = 0;

  private constructor(face: TlsIdentity, onSocket: (socket: TLSSocket) => void) {
    this.#server = createServer({ ...optionsOf(face), handshakeTimeout: HANDSHAKE_TIMEOUT_MS }, onSocket);
    this.#server.maxConnections = CONNECTIONS_MAX;
    // A box that refuses what it is shown ends the handshake.
    this.#server.on('tlsClientError', () => undefined);
    this.#server.on('connection', (socket: Socket) => {
      this.handshakes += 1;
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
  }

  /** Throws ConfigError that names the option. */
  static async open(
    at: ListenAddress,
    option: string,
    face: TlsIdentity,
    onSocket: (socket: TLSSocket) => void,
  ): Promise<TlsListener> {
    const front = new TlsListener(face, (socket) => {
      socket.on('error', () => undefined);
      onSocket(socket);
    });
    front.port = await openServer(front.#server, at, option);
    return front;
  }

  /** Shows this face from the next handshake on. */
  useIdentity(face: TlsIdentity): void {
    this.#server.setSecureContext(optionsOf(face));
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }
}

function optionsOf({ cert, key, limits: speaks }: TlsIdentity) {
  return { cert, key, ...(speaks ?? TLS_FLOOR) };
}
