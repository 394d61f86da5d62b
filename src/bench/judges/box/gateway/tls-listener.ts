import type { Socket } from 'node:net';
import { createServer, type Server, type TLSSocket } from 'node:tls';
import { HANDSHAKE_TIMEOUT_MS, TLS_FLOOR } from '../../../../lib/tls.ts';
import { type ListenAddress, openServer, type TlsIdentity } from './endpoint.ts';

const CONNECTIONS_MAX = 64;

/** Terminates TLS for a server that has none (PROTOCOL.md, clauses TLS-1 and TLS-2). */
export class TlsListener {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  /** Connections so far, whether or not the handshake succeeded. */
  handshakes = 0;
  port = 0;

  private constructor(identity: TlsIdentity, onSocket: (socket: TLSSocket) => void) {
    // Without noDelay a second message waits 40 ms in the system.
    const limits = { handshakeTimeout: HANDSHAKE_TIMEOUT_MS, noDelay: true };
    this.#server = createServer({ ...optionsOf(identity), ...limits }, (socket) => {
      socket.on('error', () => undefined);
      onSocket(socket);
    });
    this.#server.maxConnections = CONNECTIONS_MAX;
    // A box that refuses the certificate ends the handshake with an error.
    this.#server.on('tlsClientError', () => undefined);
    this.#server.on('connection', (socket: Socket) => {
      this.handshakes += 1;
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
  }

  /** Throws ConfigError that names the option. */
  static async open(at: ListenAddress, option: string, identity: TlsIdentity, onSocket: (socket: TLSSocket) => void) {
    const listener = new TlsListener(identity, onSocket);
    listener.port = await openServer(listener.#server, at, option);
    return listener;
  }

  /** Changes the certificate, from the next handshake on. */
  useIdentity(identity: TlsIdentity): void {
    this.#server.setSecureContext(optionsOf(identity));
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }
}

function optionsOf({ cert, key, limits }: TlsIdentity) {
  return { cert, key, ...(limits ?? TLS_FLOOR) };
}
