import { Socket } from 'node:net';
import type { HostResolver } from '../../../lib/resolver.ts';

/** Resolves names without the thread pool of the process. */
class NamedSocket extends Socket {
  readonly #names: HostResolver;
  readonly #isOver: () => boolean;

  constructor(names: HostResolver, isOver: () => boolean) {
    super();
    this.#names = names;
    this.#isOver = isOver;
  }

  /** Connects as the driver asks, which has no option for a lookup function but calls this method. */
  override connect(...[port, host]: unknown[]): this {
    // The pool opens the next connection inside an event handler. An exception there would end the process.
    if (this.#isOver()) return this.destroy(new Error('the connection to the database is closed'));
    return super.connect({ port: Number(port), host: String(host), lookup: this.#names.lookup() });
  }
}

/**
 * Makes the sockets to one database, and can destroy them. The driver waits for the server when it closes a socket, and
 * a server that hangs never answers.
 */
export class NamedSockets {
  readonly #names: HostResolver;
  readonly #open = new Set<Socket>();
  #isOver = false;

  constructor(names: HostResolver) {
    this.#names = names;
  }

  /** Makes a socket, which the driver connects. After `abandon`, connecting fails. */
  make(): Socket {
    const socket = new NamedSocket(this.#names, () => this.#isOver);
    this.#open.add(socket);
    socket.once('close', () => this.#open.delete(socket));
    return socket;
  }

  /** Destroys all sockets: everybody who waits for an answer gets an error at once. No new socket connects. */
  abandon(): void {
    this.#isOver = true;
    for (const socket of this.#open) socket.destroy();
  }
}
