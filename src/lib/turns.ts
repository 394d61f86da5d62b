import { setImmediate as nextTurn } from 'node:timers/promises';

/** What long answers together may hand to the system in one turn of the event loop; a longer one goes alone. */
const TURN_BYTES_MAX = 1_048_576;
/** Turns until the next ones: in each a newcomer is let in, and whatever is asked for is done. */
const TURNS_BETWEEN = 16;

/**
 * Spreads long answers over turns of the event loop, first come, first served. The system takes what a reader leaves
 * unread at once, as long as its buffers have room: thousands of long answers in a row would stop all else for
 * seconds. Those that wait are no more than the connections that have asked.
 */
export class Turns {
  readonly #waiting: { bytes: number; go: () => void }[] = [];

  /** Settles when so many bytes may be sent. */
  next(bytes: number): Promise<void> {
    return new Promise((go) => {
      this.#waiting.push({ bytes, go });
      if (this.#waiting.length === 1) void this.#work();
    });
  }

  async #work(): Promise<void> {
    while (this.#waiting.length > 0) {
      let sum = 0;
      const tooMany = this.#waiting.findIndex(({ bytes }, at) => {
        sum += bytes;
        return at > 0 && sum > TURN_BYTES_MAX;
      });
      const fitting = this.#waiting.slice(0, tooMany < 0 ? undefined : tooMany);
      for (const { go } of fitting) go();
      for (let turn = 0; turn < TURNS_BETWEEN; turn += 1) await nextTurn();
      // Only now, so that nobody who asks meanwhile begins a second round.
      this.#waiting.splice(0, fitting.length);
    }
  }
}
