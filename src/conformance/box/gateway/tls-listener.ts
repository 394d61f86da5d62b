import type { Socket } from 'node:net';
import { createServer, type Server, type TLSSocket } from 'node:tls';
import { HANDSHAKE_TIMEOUT_MS, TLS_FLOOR } from '../../../lib/tls.ts';
import type { Listen } from './endpoint.ts';
import { openServer } from './listening.ts';

/** What a server shows of itself in a handshake, PEM; and what it can speak, where that is not what it should. */
export interface Face {
  cert: string;
  key: string;
  speaks?: { minVersion: 'TLSv1' | 'TLSv1.2'; maxVersion: 'TLSv1.1' | 'TLSv1.2'; ciphers: string };
}

/** The faces of one gateway, of which a box may take the right one only. */
export interface Faces {
  /** What the box has to trust, PEM. */
  ca: string;
  right: Face;
  /** Made by another authority. */
  stranger: Face;
  expired: Face;
  /** Made for another host. */
  elsewhere: Face;
}

const CONNECTIONS_MAX = 64;

/** TLS before a server that knows nothing of it (PROTOCOL.md, clauses TLS-1 and TLS-2). */
export class TlsFront {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  /** Connections that there were, whatever became of their handshake. */
  attempts = 0;
  port = 0;

  private constructor(face: Face, onSocket: (socket: TLSSocket) => void) {
    this.#server = createServer({ ...optionsOf(face), handshakeTimeout: HANDSHAKE_TIMEOUT_MS }, onSocket);
    this.#server.maxConnections = CONNECTIONS_MAX;
    // A box that refuses what it is shown ends the handshake.
    this.#server.on('tlsClientError', () => undefined);
    this.#server.on('connection', (socket: Socket) => {
      this.attempts += 1;
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
  }

  /** Throws ConfigError that names the option. */
  static async open(at: Listen, option: string, face: Face, onSocket: (socket: TLSSocket) => void): Promise<TlsFront> {
    const front = new TlsFront(face, (socket) => {
      socket.on('error', () => undefined);
      onSocket(socket);
    });
    front.port = await openServer(front.#server, at, option);
    return front;
  }

  /** Shows this face from the next handshake on. */
  show(face: Face): void {
    this.#server.setSecureContext(optionsOf(face));
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }
}

function optionsOf({ cert, key, speaks }: Face) {
  return { cert, key, ...(speaks ?? TLS_FLOOR) };
}
