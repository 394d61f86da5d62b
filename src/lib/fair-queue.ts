import { networkOf } from './connections.ts';

/**
 * Items that wait for their turn, by the network of an address (a /64 of IPv6). Networks take turns; of one network the
 * oldest item is first. So whoever has many items waiting keeps no other network waiting for all of them.
 */
export class FairQueue<T> {
  /** The network whose turn is next comes first. No list is empty. */
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

  /** The item that `take` would return. */
  peek(): T | undefined {
    const [first] = this.#waiting.values();
    return first?.[0];
  }

  /** Removes the next item, and moves its network to the end. */
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
