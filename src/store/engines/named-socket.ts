import { Socket } from 'node:net';
import type { HostResolver } from '../../lib/resolver.ts';

/** Resolves names without the thread pool of the process. */
class NamedSocket extends Socket {
  readonly #names: HostResolver;

  constructor(names: HostResolver) {
    super();
    this.#names = names;
  }

  /** The driver has no option for a lookup function, but it calls this. */
  override connect(...[port, host]: unknown[]): this {
    return super.connect({ port: Number(port), host: String(host), lookup: this.#names.lookup() });
  }
}

/** The sockets to one database. The driver waits for the server when it closes one, and a server that hangs never answers. */
export class NamedSockets {
  readonly #names: HostResolver;
  readonly #open = new Set<Socket>();
  #isOver = false;

  constructor(names: HostResolver) {
    this.#names = names;
  }

  /** Makes a socket, which the driver connects. Throws after `abandon`. */
  make(): Socket {
    if (this.#isOver) throw new Error('the connection to the database is closed');
    const socket = new NamedSocket(this.#names);
    this.#open.add(socket);
    socket.once('close', () => this.#open.delete(socket));
    return socket;
  }

  /** Destroys all sockets: whoever waits for an answer gets an error at once. No new one can be made. */
  abandon(): void {
    this.#isOver = true;
    for (const socket of this.#open) socket.destroy();
  }
}
