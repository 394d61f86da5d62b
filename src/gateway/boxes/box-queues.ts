import { reasonOf } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';

/** How many messages of one box wait for earlier ones. The gateway drops more, and the box repeats durable ones. */
const QUEUED_PER_BOX_MAX = 1000;

/** Runs the work of each box in sequence, and that of different boxes concurrently. */
export class BoxQueues {
  readonly #log: Logger;
  readonly #queues = new Map<string, { last: Promise<void>; size: number }>();

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Returns whether a further message of this box must be dropped. */
  isFull(terminalCode: string): boolean {
    return (this.#queues.get(terminalCode)?.size ?? 0) >= QUEUED_PER_BOX_MAX;
  }

  /**
   * Runs `work` after all earlier work of this box, and settles after it. Never throws: a failure is logged as `what`.
   */
  async run(terminalCode: string, what: string, work: () => Promise<void>): Promise<void> {
    const queue = this.#queues.get(terminalCode) ?? { last: Promise.resolve(), size: 0 };
    this.#queues.set(terminalCode, queue);
    queue.size += 1;
    queue.last = queue.last.then(async () => {
      try {
        await work();
      } catch (error) {
        this.#log.error('message-failed', { box: terminalCode, type: what, reason: reasonOf(error) });
      } finally {
        queue.size -= 1;
        if (queue.size === 0) this.#queues.delete(terminalCode);
      }
    });
    await queue.last;
  }

  /** Settles once all work that is queued now is done. */
  async idle(): Promise<void> {
    await Promise.all([...this.#queues.values()].map((it) => it.last));
  }
}
