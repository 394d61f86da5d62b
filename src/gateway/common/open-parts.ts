import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../lib/log.ts';
import { type Ends, endInOrder } from '../../lib/shutdown.ts';
import type { Store } from '../store/store.ts';

/** Closes the open parts of a gateway: some first, in their order, then the others together, then the store, then its place. */
export class OpenParts {
  readonly #deps: { clock: Clock; log: Logger };
  readonly #first: Ends[] = [];
  readonly #ends = new Map<string, Ends[string]>();
  readonly #last = new Map<string, Ends[string]>();
  #store: Store | undefined;
  #closing: Promise<void> | undefined;

  constructor(clock: Clock, log: Logger) {
    this.#deps = { clock, log };
  }

  /** Adds a part that closes before all others, in the order in which such parts were added. */
  addFirst(part: string, end: Ends[string]): void {
    this.#first.push({ [part]: end });
  }

  add(part: string, end: Ends[string]): void {
    this.#ends.set(part, end);
  }

  /** Adds a part that closes after the store. */
  addLast(part: string, end: Ends[string]): void {
    this.#last.set(part, end);
  }

  /** Sets the store, which closes after all parts. Returns it. */
  keep(store: Store): Store {
    this.#store = store;
    return store;
  }

  /** Closes all in `withinMs` milliseconds. A part that hangs is logged and abandoned, and so is a write that has begun. */
  close(withinMs: number): Promise<void> {
    const store: Ends = { store: () => this.#store?.close() };
    const stages = [...this.#first, Object.fromEntries(this.#ends), store, Object.fromEntries(this.#last)];
    this.#closing ??= endInOrder(stages, withinMs, this.#deps);
    return this.#closing;
  }
}
