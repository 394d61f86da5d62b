import { PayboxError } from '../../../lib/errors.ts';
import type { Logger } from '../../../lib/log.ts';
import type { DownMessage, DownOf } from '../../../protocol/messages.ts';
import type { BoxSeal } from '../../../protocol/seal.ts';
import type { InboundMessage, SessionIo } from '../contract.ts';
import { InboundQueue, lost } from './inbound-queue.ts';

/**
 * This many messages wait for the box's loop. A full queue drops its oldest push, which the gateway withdraws at its
 * deadline (PROTOCOL.md, clause SND-4). If no push waits, the queue drops the new message, because the gateway repeats
 * it: payments and withdrawals until answered, acknowledgements with the repeated report (clauses MSG-6, MSG-7 and
 * MSG-9). A message that is sent only once ends the connection instead.
 */
export const INCOMING_MAX = 256;

const SAID_ONCE: ReadonlySet<DownMessage['type']> = new Set(['welcome', 'refused']);

type Waiting = Exclude<DownMessage, { type: 'heard' }>;

interface IncomingIo {
  log: Logger;
  seal: { open: BoxSeal['open'] };
  heard: SessionIo['heard'];
}

/** Queues the received messages of one connection. */
export class MessageQueue extends InboundQueue<Waiting> implements AsyncIterable<InboundMessage> {
  readonly #io: IncomingIo;
  #dropping = false;

  constructor(io: IncomingIo) {
    super(INCOMING_MAX);
    this.#io = io;
  }

  /**
   * Verifies and queues a received message. It logs and drops one that fails verification (PROTOCOL.md, clauses MSG-3
   * and SIG-3). A message that arrives too late ends the connection, because the next session starts with new times.
   */
  take(bytes: Uint8Array | string): void {
    const opened = this.#io.seal.open(bytes);
    if (opened.ok) {
      // Answers to heartbeats bypass the queue, because they do not depend on how far the box has read.
      if (opened.value.type === 'heard') this.#io.heard(opened.value.aliveId, opened.value.aliveMs);
      else if (!this.ended) this.#keep(opened.value);
      return;
    }
    const { code, reason } = opened;
    this.#io.log.warn('message-refused', { code, reason });
    if (code === 'MESSAGE_EXPIRED') this.fail(lost(`a message of the gateway came too late: ${reason}`));
  }

  #keep(message: Waiting): void {
    if (this.queue.offer(message)) {
      if (this.queue.size === 1) this.#dropping = false;
      return;
    }
    if (this.queue.discard(({ type }) => type === 'show')) this.queue.offer(message);
    else if (SAID_ONCE.has(message.type)) this.fail(lost(`more than ${INCOMING_MAX} messages waited for the box`));
    if (!this.#dropping) this.#io.log.warn('messages-dropped', { reason: `${INCOMING_MAX} messages wait for the box` });
    this.#dropping = true;
  }

  /**
   * Yields messages. Only the newest push can get the screen, so an older one in the queue is only reported as
   * overtaken.
   */
  async *[Symbol.asyncIterator](): AsyncGenerator<InboundMessage, void, void> {
    for await (const message of this.items()) {
      // The connection is gone, so the box could not report that the QR is shown.
      if (message.type === 'show' && this.ended) continue;
      if (message.type === 'show' && this.queue.some((later) => isNewer(later, message))) {
        yield { type: 'overtaken', sessionId: message.sessionId, pushId: message.pushId };
      } else {
        yield message;
      }
    }
  }
}

function isNewer(later: Waiting, { sessionId, pushId }: DownOf<'show'>): boolean {
  return later.type === 'show' && later.sessionId === sessionId && later.pushId !== pushId;
}

/**
 * Makes the error for refused credentials. It is retryable, so that a box in a shop recovers by itself once the gateway
 * knows it.
 */
export function notRegistered(peer: string, terminalCode: string): PayboxError {
  return new PayboxError('NOT_REGISTERED', `${peer} does not accept terminalCode ${terminalCode} with its secret`, {
    severity: 'retryable',
    fix: 'check box.terminalCode and box.secret against the gateway',
  });
}
