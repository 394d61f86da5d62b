import { networkOf } from './connections.ts';

/**
 * Lets networks take turns (a /64 of IPv6 is one network), so that a caller with many items cannot delay all others.
 * Within one network the oldest item comes first.
 */
export class FairQueue<T> {
  /** The first key is the network whose turn is next. No list is empty. */
  readonly #waiting = new Map<string, T[]>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(address: string, item: T): void {
    const network = networkOf(address);
    const own = this.#waiting.get(network);
    if (own === undefined) this.#waiting.set(network, [item]);
    else own.push(item);
    this.#size += 1;
  }

  /** Returns the item that `take` would return. */
  peek(): T | undefined {
    const [first] = this.#waiting.values();
    return first?.[0];
  }

  /** Removes and returns the next item, and moves its network to the end. */
  take(): T | undefined {
    const [first] = this.#waiting;
    if (first === undefined) return undefined;
    const [network, items] = first;
    const item = items.shift();
    this.#size -= 1;
    this.#waiting.delete(network);
    if (items.length > 0) this.#waiting.set(network, items);
    return item;
  }
}
