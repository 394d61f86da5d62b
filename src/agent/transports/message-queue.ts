import { PayboxError } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import { BoundedQueue } from '../../lib/queue.ts';
import type { DownMessage, DownOf } from '../../protocol/messages.ts';
import type { InboundMessage, TransportIo } from '../contract.ts';

/**
 * Messages that wait for the box's loop. Of more, the oldest push is dropped, which its gateway takes back at its
 * deadline (PROTOCOL.md, clause SND-4); where none waits, what comes is dropped, because its gateway says it again: a
 * payment or a withdrawal until it is answered, an acknowledgement when the report is repeated (clauses MSG-6, MSG-7
 * and MSG-9). Only what is said once ends the connection.
 */
export const INCOMING_MAX = 256;

const SAID_ONCE: ReadonlySet<DownMessage['type']> = new Set(['welcome', 'refused']);

type Waiting = Exclude<DownMessage, { type: 'heard' }>;

interface IncomingIo {
  log: Logger;
  seal: Pick<TransportIo['seal'], 'open'>;
  heard: TransportIo['heard'];
}

/**
 * The receiving side of one connection: what has arrived, and why the connection ended. Iterating ends after `close`
 * and throws the reason after `fail`, in both cases once everything that had arrived is read.
 */
export class MessageQueue implements AsyncIterable<InboundMessage> {
  readonly #queue = new BoundedQueue<Waiting>(INCOMING_MAX, 'reject');
  readonly #ended = new AbortController();
  readonly #log: Logger;
  readonly #seal: Pick<TransportIo['seal'], 'open'>;
  readonly #heard: TransportIo['heard'];
  #failure: PayboxError | undefined;
  #dropping = false;

  constructor({ log, seal, heard }: IncomingIo) {
    this.#log = log;
    this.#seal = seal;
    this.#heard = heard;
  }

  get ended(): boolean {
    return this.#ended.signal.aborted;
  }

  /**
   * Takes one message as it came; one that cannot be believed is logged by name and dropped (PROTOCOL.md, clauses MSG-3
   * and SIG-3). One that came too late ends the connection, because the next one begins its time anew.
   */
  take(bytes: Uint8Array | string): void {
    const opened = this.#seal.open(bytes);
    if (opened.ok) {
      // Whether the gateway hears the box does not depend on how far the box has read.
      if (opened.value.type === 'heard') this.#heard(opened.value.aliveId);
      else if (!this.ended) this.#keep(opened.value);
      return;
    }
    const { code, reason } = opened;
    this.#log.warn('message-refused', { code, reason });
    if (code === 'MESSAGE_EXPIRED') this.fail(lost(`a message of the gateway came too late: ${reason}`));
  }

  #keep(message: Waiting): void {
    if (this.#queue.offer(message)) {
      if (this.#queue.size === 1) this.#dropping = false;
      return;
    }
    if (this.#queue.discard(({ type }) => type === 'show')) this.#queue.offer(message);
    else if (SAID_ONCE.has(message.type)) this.fail(lost(`more than ${INCOMING_MAX} messages waited for the box`));
    if (!this.#dropping) this.#log.warn('messages-dropped', { reason: `${INCOMING_MAX} messages wait for the box` });
    this.#dropping = true;
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

  /** Only the newest push can take the screen: an older one that has waited until here costs no more than its answer. */
  async *[Symbol.asyncIterator](): AsyncGenerator<InboundMessage, void, void> {
    for await (const message of this.#queue) {
      // Its gateway has answered that the box is away: nobody could be told that the QR is there.
      if (message.type === 'show' && this.ended) continue;
      if (message.type === 'show' && this.#queue.some((later) => isNewer(later, message))) {
        yield { type: 'overtaken', sessionId: message.sessionId, pushId: message.pushId };
      } else {
        yield message;
      }
    }
    if (this.#failure !== undefined) throw this.#failure;
  }
}

function isNewer(later: Waiting, { sessionId, pushId }: DownOf<'show'>): boolean {
  return later.type === 'show' && later.sessionId === sessionId && later.pushId !== pushId;
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
