/** Says how a full queue behaves. */
export type WhenFull = 'reject' | 'drop-oldest';

/**
 * Holds items in order for one asynchronous reader. `offer` never waits: a full queue rejects the item or drops the
 * oldest.
 */
export class BoundedQueue<T> implements AsyncIterable<T> {
  readonly #max: number;
  readonly #whenFull: WhenFull;
  readonly #items: T[] = [];
  #wake: (() => void) | undefined;
  #drained: PromiseWithResolvers<void> | undefined;
  #closed = false;

  constructor(max: number, whenFull: WhenFull) {
    this.#max = max;
    this.#whenFull = whenFull;
  }

  get size(): number {
    return this.#items.length;
  }

  /** Adds an item and returns whether the queue accepted it. A closed queue accepts none. */
  offer(item: T): boolean {
    if (this.#closed) return false;
    if (this.#items.length >= this.#max) {
      if (this.#whenFull === 'reject') return false;
      this.#items.shift();
    }
    this.#items.push(item);
    this.#wake?.();
    return true;
  }

  /** Returns whether some waiting item satisfies `is`. */
  some(is: (item: T) => boolean): boolean {
    return this.#items.some(is);
  }

  /** Removes the oldest waiting item that satisfies `is`; returns whether there was one. */
  discard(is: (item: T) => boolean): boolean {
    const at = this.#items.findIndex(is);
    if (at >= 0) this.#items.splice(at, 1);
    return at >= 0;
  }

  /** Settles as soon as the queue is empty. */
  drained(): Promise<void> {
    if (this.#items.length === 0) return Promise.resolve();
    this.#drained ??= Promise.withResolvers<void>();
    return this.#drained.promise;
  }

  /** Ends the iteration after the items that are already in the queue. */
  close(): void {
    this.#closed = true;
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, void> {
    for (;;) {
      const item = this.#items.shift();
      if (this.#items.length === 0) {
        this.#drained?.resolve();
        this.#drained = undefined;
      }
      if (item !== undefined) {
        yield item;
      } else if (this.#closed) {
        return;
      } else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
        this.#wake = undefined;
      }
    }
  }
}
