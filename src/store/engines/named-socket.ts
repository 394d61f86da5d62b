import { Socket } from 'node:net';
import type { HostResolver } from '../../lib/resolver.ts';

/** Resolves names without the thread pool of the process. */
export class NamedSocket extends Socket {
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
