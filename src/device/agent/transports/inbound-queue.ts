import { PayboxError } from '../../../lib/errors.ts';
import { BoundedQueue } from '../../../lib/queue.ts';

/** Holds the items that a connection has received, and the reason of its end. */
export class InboundQueue<T> {
  protected readonly queue: BoundedQueue<T>;
  readonly #ended = new AbortController();
  #failure: PayboxError | undefined;

  constructor(max: number) {
    this.queue = new BoundedQueue(max, 'reject');
  }

  get ended(): boolean {
    return this.#ended.signal.aborted;
  }

  /** Aborts when the queue ends. */
  get over(): AbortSignal {
    return this.#ended.signal;
  }

  /** Adds an item. Returns whether there was room. */
  offer(item: T): boolean {
    return this.queue.offer(item);
  }

  /** Ends the queue with an error. Only the first end counts. */
  fail(reason: PayboxError): void {
    if (this.ended) return;
    this.#failure = reason;
    this.close();
  }

  /** Ends the queue without an error. */
  close(): void {
    this.queue.close();
    this.#ended.abort();
  }

  /** Returns the result of `work`. Throws if the connection ends first. */
  whileOpen<R>(work: Promise<R>): Promise<R> {
    return new Promise((resolve, reject) => {
      const { signal } = this.#ended;
      const onEnd = () => reject(this.#failure ?? lost('the connection is closed'));
      const settle = () => signal.removeEventListener('abort', onEnd);
      work.finally(settle).then(resolve, reject);
      if (signal.aborted) onEnd();
      else signal.addEventListener('abort', onEnd, { once: true });
    });
  }

  /** Yields the items. After the last one it ends (`close`) or throws the reason (`fail`). */
  async *items(): AsyncGenerator<T, void, void> {
    yield* this.queue;
    if (this.#failure !== undefined) throw this.#failure;
  }
}

/** Returns the error for a lost connection. Redialling is the remedy. */
export function lost(message: string, cause?: unknown): PayboxError {
  return new PayboxError('LINK_LOST', message, { severity: 'retryable', cause });
}
