import { endAll } from '../lib/shutdown.ts';
import type { Store } from '../store/store.ts';
import type { Context } from './context.ts';

/** The open parts of a gateway. They are closed together, then the store that they write to. */
export class OpenParts {
  readonly #deps: Pick<Context, 'clock' | 'log'>;
  readonly #ends = new Map<string, () => unknown>();
  #store: Store | undefined;
  #closing: Promise<void> | undefined;

  constructor(deps: Pick<Context, 'clock' | 'log'>) {
    this.#deps = deps;
  }

  add(part: string, end: () => unknown): void {
    this.#ends.set(part, end);
  }

  /** The store to close after all parts. Returns it. */
  keep(store: Store): Store {
    this.#store = store;
    return store;
  }

  close(withinMs: number): Promise<void> {
    this.#closing ??= this.#close(withinMs);
    return this.#closing;
  }

  async #close(withinMs: number): Promise<void> {
    await endAll(Object.fromEntries(this.#ends), withinMs, this.#deps);
    await this.#store?.close();
  }
}
