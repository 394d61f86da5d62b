import { macDigits, type WireNotice } from '../../../protocol/dialect.ts';
import type { DownOf } from '../../../protocol/messages.ts';
import type { BoxConfig } from '../../config.ts';
import type { Context } from '../../context.ts';
import { paidNotice } from './notices.ts';

/** Money that came longer ago is no news: such a payment is listed, and not said aloud (clause VQD-8). */
const NEWS_MAX_MS = 300_000;
/** Texts of payments that are remembered, so that two payments do not get the same text. */
const TEXTS_MAX = 1_000;

export interface AnnouncementsDeps extends Pick<Context, 'store' | 'clock' | 'log'> {
  paidMessage: string;
  /** Calendar time of the gateway's start, in milliseconds since 1970. */
  startedMs: number;
}

/** Which payments a box of the dialect still has to say, and in which words (PROTOCOL.md, clauses VQD-6 and VQD-8). */
export class Announcements {
  readonly #box: BoxConfig;
  readonly #deps: AnnouncementsDeps;
  readonly #texts: string[] = [];
  #isKnown = false;
  /** Monotonic time at which this run of the gateway lost the box. */
  #pausedAtMs = Number.NEGATIVE_INFINITY;
  /** How long the box was away before its session. */
  #awayMs = Number.POSITIVE_INFINITY;

  constructor(box: BoxConfig, deps: AnnouncementsDeps) {
    this.#box = box;
    this.#deps = deps;
  }

  /** Call when the box is there. What came before a box was there for the first time is not its news. */
  async begin(): Promise<void> {
    const { store, clock, log } = this.#deps;
    const { terminalCode: box, macAddr = '' } = this.#box;
    this.#awayMs = clock.monotonicMs() - this.#pausedAtMs;
    if (this.#isKnown) return;
    const old = await store.payments.beginNotices(box, `vietqr-box-${box}-${macDigits(macAddr)}`, clock.wallMs());
    this.#isKnown = true;
    if (old === 0) return;
    log.info('notices-old', { box, count: old, reason: 'they came before this box was here for the first time' });
  }

  /** Call when the box has gone. */
  pause(): void {
    this.#pausedAtMs = this.#deps.clock.monotonicMs();
  }

  /** The notice of a payment, which is stored as maybe sent; undefined when it must not be sent, or not any more. */
  async take(payment: DownOf<'payment'>): Promise<WireNotice | undefined> {
    const { store, clock, log, startedMs } = this.#deps;
    const { transactionId, paidAtMs } = payment;
    const box = this.#box.terminalCode;
    // An earlier run may have sent it, and nobody would know.
    const isUnsure = payment.repeated && paidAtMs < startedMs;
    if (!isUnsure && !this.#isNews(payment)) {
      await store.payments.dropNotice(transactionId, box, clock.wallMs());
      const reason = `this payment is older than ${NEWS_MAX_MS / 60_000} min; it is in the list and is not said any more`;
      log.warn('notice-old', { box, transactionId, reason });
      return undefined;
    }
    const stored = await store.payments.report(transactionId, box, false, clock.wallMs());
    if (stored !== 'first') return undefined;
    if (!isUnsure) return this.#noticeOf(payment);
    const reason = 'the gateway was stopped before it could know whether this notice was sent; it is not sent again';
    log.warn('notice-unsure', { box, transactionId, reason });
    return undefined;
  }

  /** Records that a notice was taken for the connected box. */
  async sent(transactionId: string): Promise<void> {
    await this.#deps.store.payments.markSent(transactionId, this.#box.terminalCode);
  }

  /** Takes back that a notice was sent: nobody was there. */
  async putBack(transactionId: string): Promise<void> {
    await this.#deps.store.payments.unreport(transactionId, this.#box.terminalCode);
  }

  /** By either clock: a calendar that is set must not silence what came during a short absence. */
  #isNews({ paidAtMs, late }: DownOf<'payment'>): boolean {
    if (late) return false;
    return this.#awayMs <= NEWS_MAX_MS || this.#deps.clock.wallMs() - paidAtMs <= NEWS_MAX_MS;
  }

  #noticeOf(payment: DownOf<'payment'>): WireNotice {
    const { paidMessage, startedMs } = this.#deps;
    // An earlier run may have said the same of another payment.
    const mayBeKnown = (it: string) => payment.paidAtMs < startedMs || this.#texts.includes(it);
    const { text, notice } = paidNotice(payment, paidMessage, mayBeKnown);
    this.#texts.push(text);
    if (this.#texts.length > TEXTS_MAX) this.#texts.shift();
    return notice;
  }
}
