import { setImmediate as nextTurn } from 'node:timers/promises';
import { networkOf } from './network.ts';

/** What long answers together may hand to the system in one turn of the event loop; a longer one goes alone. */
const TURN_BYTES_MAX = 1_048_576;
/** Turns until the next ones, one more for so many that wait: in each a newcomer is let in, and whatever is asked is done. */
const TURNS_BETWEEN_MAX = 16;
const WAITING_PER_TURN = 64;

interface Waiting {
  bytes: number;
  go: () => void;
}

/**
 * Spreads long answers over turns of the event loop, one of each address (a /64 of IPv6) after the other. The system takes
 * what a reader leaves unread at once, as long as its buffers have room: thousands of long answers in a row would stop
 * all else for seconds. Those that wait are no more than the connections that have asked.
 */
export class Turns {
  /** By network, the one whose turn is next first; of each the first come first. */
  readonly #waiting = new Map<string, Waiting[]>();
  #count = 0;
  #isWorking = false;

  /** Settles when so many bytes may be sent to this address. */
  next(bytes: number, address: string): Promise<void> {
    return new Promise((go) => {
      const network = networkOf(address);
      const own = this.#waiting.get(network) ?? [];
      own.push({ bytes, go });
      this.#count += 1;
      this.#waiting.set(network, own);
      if (!this.#isWorking) void this.#work();
    });
  }

  async #work(): Promise<void> {
    this.#isWorking = true;
    while (this.#waiting.size > 0) {
      let sum = 0;
      for (const [network, [first]] of this.#waiting) {
        if (first === undefined || (sum > 0 && sum + first.bytes > TURN_BYTES_MAX)) break;
        sum += first.bytes;
        this.#take(network);
        first.go();
      }
      const turns = Math.min(TURNS_BETWEEN_MAX, 1 + Math.floor(this.#count / WAITING_PER_TURN));
      for (let turn = 0; turn < turns; turn += 1) await nextTurn();
    }
    this.#isWorking = false;
  }

  /** Takes the first of a network away; the others of it are after those of all other networks. */
  #take(network: string): void {
    const [, ...others] = this.#waiting.get(network) ?? [];
    this.#waiting.delete(network);
    this.#count -= 1;
    if (others.length > 0) this.#waiting.set(network, others);
  }
}
