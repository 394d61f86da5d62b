import type { WireNotice } from '../../../protocol/dialect.ts';
import type { DownOf } from '../../../protocol/messages.ts';
import type { Stored } from '../../common/stored.ts';
import type { World } from '../../common/world.ts';
import type { BoxConfig } from '../../config/config.ts';
import { paidNotice } from './notices.ts';

/** How many texts of payments are remembered, so that two payments do not get the same text. */
const TEXTS_MAX = 1_000;

/** The template of an announcement, and the time from which this run remembers its texts. */
export interface Said {
  paidMessage: string;
  /** Calendar time of the gateway's start, in milliseconds since 1970. */
  startedMs: number;
}

/**
 * Decides which payments a box of the dialect still has to announce, and in which words (PROTOCOL.md, clauses VQD-6 and
 * VQD-8). The hub decides which payments are late.
 */
export class Announcements {
  readonly #box: BoxConfig;
  readonly #world: World;
  readonly #stored: Stored;
  readonly #said: Said;
  readonly #texts: string[] = [];

  constructor(box: BoxConfig, world: World, stored: Stored, said: Said) {
    this.#box = box;
    this.#world = world;
    this.#stored = stored;
    this.#said = said;
  }

  /** Returns the notice of a payment after it was stored as possibly sent, or undefined if it must not be sent. */
  async take(payment: DownOf<'payment'>): Promise<WireNotice | undefined> {
    const { store } = this.#stored;
    const { clock, log } = this.#world;
    const { startedMs } = this.#said;
    const { transactionId, paidAtMs } = payment;
    const box = this.#box.terminalCode;
    // An earlier run may have sent the notice, and no record would say so.
    const isUnsure = payment.repeated && paidAtMs < startedMs;
    if (!isUnsure && payment.late) {
      await store.payments.dropNotice(transactionId, box, clock.wallMs());
      const reason = 'this payment is no news to the box: it is in the list, and the box does not say it';
      log.warn('notice-expired', { box, transactionId, reason });
      return undefined;
    }
    const stored = await store.payments.report(transactionId, box, false, clock.wallMs());
    if (stored !== 'first') return undefined;
    if (!isUnsure) return this.#noticeOf(payment);
    const reason = 'the gateway was stopped before it could know whether this notice was sent; it is not sent again';
    log.warn('notice-delivery-unknown', { box, transactionId, reason });
    return undefined;
  }

  /** Records that the connected box received a notice. */
  async sent(transactionId: string): Promise<void> {
    await this.#stored.store.payments.markSent(transactionId, this.#box.terminalCode);
  }

  /** Undoes the record of a notice that no box received. */
  async putBack(transactionId: string): Promise<void> {
    await this.#stored.store.payments.unreport(transactionId, this.#box.terminalCode);
  }

  #noticeOf(payment: DownOf<'payment'>): WireNotice {
    const { paidMessage, startedMs } = this.#said;
    // An earlier run may have sent the same text for another payment.
    const mayBeKnown = (it: string) => payment.paidAtMs < startedMs || this.#texts.includes(it);
    const { text, notice } = paidNotice(payment, paidMessage, mayBeKnown);
    this.#texts.push(text);
    if (this.#texts.length > TEXTS_MAX) this.#texts.shift();
    return notice;
  }
}
