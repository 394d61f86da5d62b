import { reasonOf } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';

/** Messages of one box that wait for the one before them; more are not taken, and durable ones come again. */
const QUEUED_PER_BOX_MAX = 1000;

/** What happens to each box, one after the other. */
export class BoxQueues {
  readonly #log: Logger;
  readonly #inboxes = new Map<string, { last: Promise<void>; size: number }>();

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Whether a message of this box would have to wait for too many others. */
  isFull(terminalCode: string): boolean {
    return (this.#inboxes.get(terminalCode)?.size ?? 0) >= QUEUED_PER_BOX_MAX;
  }

  /** Does the work once all before it is done, and settles after it. Never throws: what goes wrong is logged as `what`. */
  async run(terminalCode: string, what: string, work: () => Promise<void>): Promise<void> {
    const inbox = this.#inboxes.get(terminalCode) ?? { last: Promise.resolve(), size: 0 };
    this.#inboxes.set(terminalCode, inbox);
    inbox.size += 1;
    inbox.last = inbox.last.then(async () => {
      try {
        await work();
      } catch (error) {
        this.#log.error('message-failed', { box: terminalCode, type: what, reason: reasonOf(error) });
      } finally {
        inbox.size -= 1;
        if (inbox.size === 0) this.#inboxes.delete(terminalCode);
      }
    });
    await inbox.last;
  }

  /** Settles once all that was to be done until now is. */
  async idle(): Promise<void> {
    await Promise.all([...this.#inboxes.values()].map((it) => it.last));
  }
}
