import { PayboxError } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import { BoundedQueue } from '../../lib/queue.ts';
import { decodeDown } from '../../protocol/codec.ts';
import type { DownMessage } from '../../protocol/messages.ts';

/**
 * Messages that wait for the box's loop. One more ends the connection instead of being lost in silence: on the next
 * welcome the gateway repeats what it is owed an answer to (PROTOCOL.md, clause MSG-7).
 */
export const INCOMING_MAX = 256;

/**
 * The receiving side of one connection: what has arrived, and why the connection ended. Iterating ends after `close`
 * and throws the reason after `fail`, in both cases once everything that had arrived is read.
 */
export class Incoming implements AsyncIterable<DownMessage> {
  readonly #queue = new BoundedQueue<DownMessage>(INCOMING_MAX, 'reject');
  readonly #ended = new AbortController();
  readonly #log: Logger;
  #failure: PayboxError | undefined;

  constructor(log: Logger) {
    this.#log = log;
  }

  get ended(): boolean {
    return this.#ended.signal.aborted;
  }

  /** Takes one message as it came; an illegal one is logged and dropped (PROTOCOL.md, clause MSG-3). */
  take(bytes: Uint8Array | string): void {
    const decoded = decodeDown(bytes);
    if (!decoded.ok) {
      this.#log.warn('message-illegal', { reason: decoded.reason });
    } else if (!this.#queue.offer(decoded.value) && !this.ended) {
      this.fail(lost(`more than ${INCOMING_MAX} messages waited for the box`));
    }
  }

  /** The connection is lost. Only the first end counts. */
  fail(reason: PayboxError): void {
    if (this.ended) return;
    this.#failure = reason;
    this.close();
  }

  /** The box itself ends the connection. */
  close(): void {
    this.#queue.close();
    this.#ended.abort();
  }

  /** The result of `work`; throws as soon as the connection ends before it. */
  whileOpen<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const { signal } = this.#ended;
      const onEnd = () => reject(this.#failure ?? lost('the connection is closed'));
      const settle = () => signal.removeEventListener('abort', onEnd);
      work.finally(settle).then(resolve, reject);
      if (signal.aborted) onEnd();
      else signal.addEventListener('abort', onEnd, { once: true });
    });
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<DownMessage, void, void> {
    yield* this.#queue;
    if (this.#failure !== undefined) throw this.#failure;
  }
}

/** An open connection that is no more; redialling is all there is to do. */
export function lost(message: string, cause?: unknown): PayboxError {
  return new PayboxError('LINK_LOST', message, { severity: 'retryable', cause });
}

/**
 * The peer does not take this box's credentials. Retryable, because a box in a shop must come back by itself once the
 * gateway knows it.
 */
export function notRegistered(peer: string, terminalCode: string): PayboxError {
  return new PayboxError('NOT_REGISTERED', `${peer} does not accept terminalCode ${terminalCode} with its secret`, {
    severity: 'retryable',
    fix: 'check box.terminalCode and box.secret against the gateway',
  });
}
